//! What a rule is made of: how large it is, what it calls, and what it mentions, by whole paths. Where
//! that is not certain it says more than there is, never less: how deep a policy can go rests on it.

use regorus::unstable::{Expr, Literal, Module, Query, Rule, RuleHead};
use std::collections::{BTreeMap, BTreeSet};

/// The names from `data` on that something is known by.
pub(crate) type Path = Vec<String>;

/// All definitions of one name.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) is_function: bool,
    pub(crate) size: usize,
    pub(crate) calls: BTreeMap<Call, (u32, u32)>,
    pub(crate) mentions: BTreeSet<Mention>,
    /// What it puts in the place of something else, which may be a function.
    pub(crate) replacements: BTreeSet<Mention>,
    /// The imports that it uses.
    pub(crate) imports: BTreeSet<String>,
}

/// A function that is called somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    /// As it is written.
    pub(crate) name: String,
    pub(crate) target: Mention,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    pub(crate) path: Path,
    /// Whether it is in `data` for sure, and no variable.
    pub(crate) is_data: bool,
}

/// The names that a reference is made of, if it is made of names only.
pub(crate) fn path(expr: &Expr) -> Option<Path> {
    match prefix(expr) {
        (path, true) => Some(path),
        _ => None,
    }
}

/// The first name of a reference.
pub(crate) fn root(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Var { span, .. } => Some(span.text()),
        Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => root(refr),
        _ => None,
    }
}

/// Where a reference begins; the parser tells where its last dot is.
fn place(expr: &Expr) -> (u32, u32) {
    match expr {
        Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => place(refr),
        expr => (expr.span().line, expr.span().col),
    }
}

/// The names that a reference begins with, and whether that is all of it.
fn prefix(expr: &Expr) -> (Path, bool) {
    match expr {
        Expr::Var { span, .. } => (vec![span.text().to_owned()], true),
        Expr::RefDot { refr, field, .. } => {
            let (mut path, whole) = prefix(refr);
            if whole {
                path.push(field.0.text().to_owned());
            }
            (path, whole)
        }
        Expr::RefBrack { refr, index, .. } => {
            let (mut path, whole) = prefix(refr);
            let name = match index.as_ref() {
                Expr::String { value, .. } | Expr::RawString { value, .. } => {
                    value.as_string().ok()
                }
                _ => None,
            };
            match name {
                Some(name) if whole => {
                    path.push(name.to_string());
                    (path, true)
                }
                _ => (path, false),
            }
        }
        _ => (Vec::new(), false),
    }
}

/// What a module imports, by the names that they have in it.
pub(crate) fn imports(module: &Module) -> BTreeMap<String, Path> {
    let named = module.imports.iter().filter_map(|import| {
        let path = path(&import.refr)?;
        let name = match &import.r#as {
            Some(name) => name.text().to_owned(),
            None => path.last()?.clone(),
        };
        Some((name, path))
    });
    named.collect()
}

/// Looks at all of a rule.
pub(crate) struct Walk<'w> {
    /// The package that the rule is in.
    pub(crate) package: &'w [String],
    /// What it imports, by the names that they have here.
    pub(crate) imports: &'w BTreeMap<String, Path>,
    pub(crate) part: Part,
    /// How deep it is in an expression now, and was at most.
    pub(crate) level: usize,
    pub(crate) deepest: usize,
}

impl Walk<'_> {
    pub(crate) fn rule(&mut self, rule: &Rule) {
        self.part.size += 4;
        match rule {
            Rule::Default { value, args, .. } => {
                self.expr(value);
                args.iter().for_each(|arg| self.expr(arg));
            }
            Rule::Spec { head, bodies, .. } => {
                let (refr, assign) = match head {
                    RuleHead::Compr { refr, assign, .. } => (refr, assign.as_ref()),
                    RuleHead::Set { refr, key, .. } => {
                        key.iter().for_each(|key| self.expr(key));
                        (refr, None)
                    }
                    RuleHead::Func {
                        refr, args, assign, ..
                    } => {
                        args.iter().for_each(|arg| self.expr(arg));
                        (refr, assign.as_ref())
                    }
                };
                self.head(refr);
                assign.iter().for_each(|assign| self.expr(&assign.value));
                for body in bodies {
                    body.assign
                        .iter()
                        .for_each(|assign| self.expr(&assign.value));
                    self.query(&body.query);
                }
            }
        }
    }

    /// The name of a rule, which mentions only what is in its brackets.
    fn head(&mut self, mut refr: &Expr) {
        loop {
            match refr {
                Expr::RefBrack {
                    refr: rest, index, ..
                } => {
                    self.expr(index);
                    refr = rest;
                }
                Expr::RefDot { refr: rest, .. } => refr = rest,
                _ => return,
            }
        }
    }

    fn query(&mut self, query: &Query) {
        for statement in &query.stmts {
            self.part.size += 1;
            for with in &statement.with_mods {
                self.expr(&with.refr);
                self.replacement(&with.r#as);
            }
            match &statement.literal {
                Literal::SomeVars { .. } => {}
                Literal::SomeIn {
                    key,
                    value,
                    collection,
                    ..
                } => {
                    key.iter().for_each(|key| self.expr(key));
                    self.expr(value);
                    self.expr(collection);
                }
                Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => self.expr(expr),
                Literal::Every { domain, query, .. } => {
                    self.expr(domain);
                    self.query(query);
                }
            }
        }
    }

    /// What is put in the place of something may be a function, which is called wherever that was.
    fn replacement(&mut self, expr: &Expr) {
        if let Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. } = expr {
            let (names, _) = prefix(expr);
            let mention = self.whole(names);
            self.part.replacements.extend(mention);
        }
        self.expr(expr);
    }

    fn expr(&mut self, expr: &Expr) {
        self.level += 1;
        self.deepest = self.deepest.max(self.level);
        self.parts(expr);
        self.level -= 1;
    }

    fn parts(&mut self, expr: &Expr) {
        self.part.size += 1;
        match expr {
            Expr::Var { .. } => self.mention(expr),
            Expr::Array { items, .. } | Expr::Set { items, .. } => {
                items.iter().for_each(|item| self.expr(item));
            }
            Expr::Object { fields, .. } => {
                for (_, key, value) in fields {
                    self.both(key, value);
                }
            }
            Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
                self.expr(term);
                self.query(query);
            }
            Expr::ObjectCompr {
                key, value, query, ..
            } => {
                self.both(key, value);
                self.query(query);
            }
            Expr::Call { fcn, params, .. } => {
                let names = path(fcn).unwrap_or_default();
                let name = names.join(".");
                let nothing = Mention {
                    path: Vec::new(),
                    is_data: false,
                };
                let target = self.whole(names).unwrap_or(nothing);
                let at = place(fcn);
                self.part.calls.entry(Call { name, target }).or_insert(at);
                params.iter().for_each(|param| self.expr(param));
            }
            Expr::UnaryExpr { expr, .. } => self.expr(expr),
            Expr::RefDot { refr, .. } => {
                self.mention(expr);
                self.inner(refr);
            }
            Expr::RefBrack { refr, index, .. } => {
                self.mention(expr);
                self.inner(refr);
                self.expr(index);
            }
            Expr::BinExpr { lhs, rhs, .. } => self.both(lhs, rhs),
            Expr::BoolExpr { lhs, rhs, .. } => self.both(lhs, rhs),
            Expr::ArithExpr { lhs, rhs, .. } => self.both(lhs, rhs),
            Expr::AssignExpr { lhs, rhs, .. } => self.both(lhs, rhs),
            Expr::Membership {
                key,
                value,
                collection,
                ..
            } => {
                key.iter().for_each(|key| self.expr(key));
                self.both(value, collection);
            }
            _ => {}
        }
    }

    /// The rest of a reference whose whole was mentioned.
    fn inner(&mut self, expr: &Expr) {
        self.level += 1;
        self.deepest = self.deepest.max(self.level);
        self.part.size += 1;
        match expr {
            Expr::Var { .. } => {}
            Expr::RefDot { refr, .. } => self.inner(refr),
            Expr::RefBrack { refr, index, .. } => {
                self.inner(refr);
                self.expr(index);
            }
            other => self.parts(other),
        }
        self.level -= 1;
    }

    fn both(&mut self, left: &Expr, right: &Expr) {
        self.expr(left);
        self.expr(right);
    }

    fn mention(&mut self, expr: &Expr) {
        let (names, _) = prefix(expr);
        let mention = self.whole(names);
        self.part.mentions.extend(mention);
    }

    /// What names stand for here, if that may be in `data`.
    fn whole(&mut self, names: Path) -> Option<Mention> {
        let (first, rest) = names.split_first()?;
        let (path, is_data) = match (first.as_str(), self.imports.get(first)) {
            ("data", _) => (rest.to_vec(), true),
            (_, Some(import)) => {
                self.part.imports.insert(first.clone());
                let path = import.strip_prefix(&["data".to_owned()][..])?;
                (path.iter().chain(rest).cloned().collect(), true)
            }
            _ => (self.package.iter().chain(&names).cloned().collect(), false),
        };
        Some(Mention { path, is_data })
    }
}
