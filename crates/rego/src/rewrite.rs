//! Modules as the interpreter has to see them to answer as OPA does. Only the text of a module can be
//! given to it, so the text is what is changed: what is negated is [taken apart](crate::negation), what
//! is iterated over goes through a function that knows what can be, and nothing is printed. What is put
//! together is weighed: every array, set, object and comprehension that a value is made by goes through a
//! function that refuses what is too large or too deep. Those that may be patterns cannot go there; how
//! much they may put together is limited beforehand. Lines stay where they are, so that messages name the
//! right ones; columns may move.

use crate::error::{LoadError, Names, Place};
use crate::negation;
use crate::read::{REWRITTEN, Read};
use crate::text::Marks;
use regorus::Engine;
use regorus::unstable::{
    ArithOp, AssignOp, Expr, ExprRef, Literal, LiteralStmt, Query, Rule, RuleHead, Span,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What the functions are called, after the prefix, that let some values pass and make others undefined:
/// what can be iterated over, and what operators take.
pub(crate) const EACH: &str = "each";
pub(crate) const NUMBER: &str = "number";
pub(crate) const INTEGER: &str = "integer";
pub(crate) const TERM: &str = "term";
pub(crate) const SET: &str = "set";
/// And the one that weighs.
pub(crate) const LIGHT: &str = "light";

/// How often a rule may double a value without having it weighed, and how many levels it may add.
const DOUBLINGS: u32 = 8;
const LEVELS: usize = 32;

/// Rewrites a module and adds it to an engine. The `globals` are the names that mean something outside
/// of rules; names with the `prefix` are free.
pub(crate) fn add(
    engine: &mut Engine,
    names: &mut Names,
    read: &Read<'_>,
    globals: &BTreeSet<String>,
    prefix: &str,
) -> Result<(), LoadError> {
    let text = rewrite(read, globals, prefix)?;
    engine.set_rego_v0(read.is_old);
    let added = engine.add_policy(names.add(read.module.name), text);
    added.map(|_| ()).map_err(|error| names.wrong(&error))
}

fn rewrite(read: &Read<'_>, globals: &BTreeSet<String>, prefix: &str) -> Result<String, LoadError> {
    let text = read.text.as_ref();
    let mut rewriter = Rewriter {
        text,
        marks: Marks::read(text),
        globals,
        prefix,
        edits: Vec::new(),
        count: 0,
        grown: text.len(),
        renamed: Vec::new(),
        prints: !globals.contains("print"),
        doublings: 0,
        levels: 0,
        has_names: false,
    };
    for rule in &read.tree.policy {
        (rewriter.doublings, rewriter.levels) = (0, 0);
        rewriter.has_names = false;
        rewriter.rule(rule);
        // What such a name stands for is not weighed in the end.
        let (doublings, levels) = match rewriter.has_names {
            true => (0, 0),
            false => (DOUBLINGS, LEVELS),
        };
        if rewriter.doublings > doublings || rewriter.levels > levels {
            return Err(LoadError::Wrong {
                place: Place {
                    module: read.module.name.to_owned(),
                    position: Some((rule.span().line, rule.span().col)),
                },
                why: "the rule puts too much together with `=`; use `:=`".into(),
            });
        }
    }
    match rewriter.grown > REWRITTEN {
        true => Err(LoadError::Unreadable {
            module: read.module.name.to_owned(),
            why: format!("the negations of the module take more than {REWRITTEN} bytes"),
        }),
        false => Ok(rewriter.take(0, 0..text.len())),
    }
}

/// One change: what is put in the place of what.
#[derive(Debug)]
struct Edit {
    range: Range<usize>,
    by: String,
}

struct Rewriter<'r> {
    text: &'r str,
    marks: Marks,
    globals: &'r BTreeSet<String>,
    prefix: &'r str,
    /// They do not overlap. Those within a part of the text are the last ones once it was walked.
    edits: Vec<Edit>,
    count: usize,
    /// How long the text will be at least.
    grown: usize,
    /// What local variables are called, from the outside in.
    renamed: Vec<BTreeMap<String, String>>,
    /// Whether `print` is the function that everybody knows.
    prints: bool,
    /// How often the rule doubles what is not weighed, and how many levels it adds.
    doublings: u32,
    levels: usize,
    /// Whether the rule has keys in its head that can only be names.
    has_names: bool,
}

/// Something that a query makes a value of in the end.
enum Term<'t> {
    /// Part of a comprehension, which is weighed as a whole, or a name.
    Part(&'t ExprRef),
    /// The value or a key of a rule, and whether the body may bind it instead.
    Head(&'t ExprRef, bool),
}

/// The variables of a pattern.
fn variables<'p>(pattern: &'p Expr, names: &mut Vec<&'p str>) {
    match pattern {
        Expr::Var { span, .. } => names.push(span.text()),
        Expr::Array { items, .. } => items.iter().for_each(|item| variables(item, names)),
        Expr::Object { fields, .. } => {
            for (_, _, value) in fields {
                variables(value, names);
            }
        }
        _ => {}
    }
}

/// Whether an expression puts a value together, and of what is not known beforehand.
fn is_made(expr: &Expr) -> bool {
    match expr {
        Expr::Array { .. } | Expr::Set { .. } | Expr::Object { .. } => leaves(expr) > 0,
        Expr::ArrayCompr { .. } | Expr::SetCompr { .. } | Expr::ObjectCompr { .. } => true,
        _ => false,
    }
}

/// How many values that are not known beforehand an expression is put together of.
fn leaves(expr: &Expr) -> usize {
    match expr {
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.iter().map(|item| leaves(item)).sum()
        }
        Expr::Object { fields, .. } => {
            let fields = fields.iter();
            fields
                .map(|(_, key, value)| leaves(key) + leaves(value))
                .sum()
        }
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. } => 0,
        _ => 1,
    }
}

/// How many levels an expression adds to what it is put together of.
fn levels(expr: &Expr) -> usize {
    let deepest = match expr {
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.iter().map(|item| levels(item)).max()
        }
        Expr::Object { fields, .. } => {
            let fields = fields.iter();
            fields
                .map(|(_, key, value)| levels(key).max(levels(value)))
                .max()
        }
        Expr::ArrayCompr { term, .. } | Expr::SetCompr { term, .. } => Some(levels(term)),
        Expr::ObjectCompr { key, value, .. } => Some(levels(key).max(levels(value))),
        _ => return 0,
    };
    deepest.unwrap_or_default() + 1
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Rewriter<'_> {
    /// The changed text of a part of the module. Its changes, which are those from `first` on, are done
    /// with.
    fn take(&mut self, first: usize, range: Range<usize>) -> String {
        let within = |edit: &Edit| range.start <= edit.range.start && edit.range.end <= range.end;
        let last = self.edits.split_off(first.min(self.edits.len()));
        let (mut edits, others): (Vec<Edit>, Vec<Edit>) = last.into_iter().partition(within);
        self.edits.extend(others);
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let (mut text, mut done) = (String::new(), range.start);
        for edit in edits {
            text.push_str(self.text.get(done..edit.range.start).unwrap_or_default());
            text.push_str(&edit.by);
            done = edit.range.end;
        }
        text.push_str(self.text.get(done..range.end).unwrap_or_default());
        text
    }

    fn change(&mut self, range: Range<usize>, by: String) {
        self.grown = self.grown.saturating_add(by.len());
        if self.grown <= REWRITTEN {
            self.edits.push(Edit { range, by });
        }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("{}{}", self.prefix, self.count)
    }

    fn rule(&mut self, rule: &Rule) {
        let Rule::Spec { head, bodies, .. } = rule else {
            return;
        };
        let (refr, key, args, assign) = match head {
            RuleHead::Compr { refr, assign, .. } => (refr, None, &[][..], assign.as_ref()),
            RuleHead::Set { refr, key, .. } => (refr, key.as_ref(), &[][..], None),
            RuleHead::Func {
                refr, args, assign, ..
            } => (refr, None, args.as_slice(), assign.as_ref()),
        };
        let (mut terms, mut keys) = (Vec::new(), Vec::new());
        let mut name = refr;
        let mut parts = 0;
        while let Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } = name.as_ref() {
            if let Expr::RefBrack { index, .. } = name.as_ref() {
                keys.push(index);
            }
            parts += 1;
            name = refr;
        }
        // A head with several keys can only have names in its brackets.
        match parts > 1 || key.is_some() {
            true => self.has_names = !keys.is_empty(),
            false => terms.append(&mut keys),
        }
        terms.extend(key);
        terms.extend(assign.map(|assign| &assign.value));
        let mut names = Vec::new();
        args.iter().for_each(|arg| variables(arg, &mut names));
        let names = names
            .into_iter()
            .map(|name| (name.to_owned(), name.to_owned()));
        self.renamed.push(names.collect());
        if bodies.is_empty() {
            keys.iter().for_each(|key| self.plain(key));
            terms.iter().for_each(|term| self.head(term, false));
        }
        for (index, body) in bodies.iter().enumerate() {
            // What the head says is bound by the first body.
            let own = body.assign.as_ref();
            terms.extend(own.map(|own| &own.value));
            let is_bound = bodies.len() > 1;
            let heads = std::mem::take(&mut terms).into_iter();
            let heads = heads.map(|term| Term::Head(term, is_bound));
            let keys = std::mem::take(&mut keys).into_iter().map(Term::Part);
            let all: Vec<Term<'_>> = keys.chain(heads).collect();
            self.query(&body.query, &all);
            let assign = if index == 0 { assign } else { own };
            if let (Some(assign), true) = (assign, bodies.len() > 1) {
                self.value(&assign.value, &body.query);
            }
        }
        self.renamed.pop();
    }

    /// The variables that a query declares, with what they are called from now on. Where something else
    /// has their name too, the interpreter would take the one for the other; so they get another.
    fn scope(&mut self, query: &Query) -> BTreeMap<String, String> {
        let mut names = Vec::new();
        for statement in &query.stmts {
            match &statement.literal {
                Literal::SomeVars { vars, .. } => names.extend(vars.iter().map(|name| name.text())),
                Literal::SomeIn { key, value, .. } => {
                    key.iter().for_each(|key| variables(key, &mut names));
                    variables(value, &mut names);
                }
                Literal::Expr { expr, .. } => {
                    if let Expr::AssignExpr { op, lhs, .. } = expr.as_ref()
                        && *op == AssignOp::ColEq
                    {
                        variables(lhs, &mut names);
                    }
                }
                Literal::NotExpr { .. } | Literal::Every { .. } => {}
            }
        }
        self.new_names(names.into_iter())
    }

    fn new_names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> BTreeMap<String, String> {
        let mut scope = BTreeMap::new();
        for name in names.filter(|name| *name != "_") {
            let hides = self.globals.contains(name) || self.renamed(name).is_some();
            let new = match hides {
                true => format!("{}_{name}", self.name()),
                false => name.to_owned(),
            };
            scope.insert(name.to_owned(), new);
        }
        scope
    }

    /// What a variable is called now, if that is not its name.
    fn renamed(&self, name: &str) -> Option<String> {
        let mut scopes = self.renamed.iter().rev();
        scopes.find_map(|scope| scope.get(name)).cloned()
    }

    fn rename(&mut self, name: &Span) {
        if let Some(new) = self.renamed(name.text()).filter(|new| new != name.text()) {
            self.change(name.start as usize..name.end as usize, new);
        }
    }

    /// The value of a rule that has `else`. A variable in the brackets of it that the body binds would
    /// be taken for one to iterate over, so the body binds the value too.
    fn value(&mut self, value: &Expr, body: &Query) {
        let range = self.marks.range(value);
        let text = self.text.get(range.clone()).unwrap_or_default();
        let Some(last) = body.stmts.last().filter(|_| negation::is_indexed(value)) else {
            return;
        };
        if text.contains('\n') || self.edits.iter().any(|edit| overlap(&edit.range, &range)) {
            return;
        }
        let name = self.name();
        let bound = format!("; {name} := {}{LIGHT}({text})", self.prefix);
        let first = body.stmts.first().map_or(0, |first| first.span.start);
        let end = self.marks.whole(last.span.start, last.span.end).end;
        match body.span.start == first {
            true => {
                let start = first as usize;
                self.change(start..start, "{ ".to_owned());
                self.change(end..end, format!("{bound} }}"));
            }
            false => self.change(end..end, bound),
        }
        self.change(range, name);
    }

    /// A query, with the expressions that what it declares is known in.
    fn query(&mut self, query: &Query, terms: &[Term<'_>]) {
        let scope = self.scope(query);
        self.renamed.push(scope);
        for term in terms {
            match term {
                Term::Part(term) => self.plain(term),
                Term::Head(term, is_bound) => self.head(term, *is_bound),
            }
        }
        self.statements(query);
        self.renamed.pop();
    }

    fn statements(&mut self, query: &Query) {
        let moved = self.declarations(query);
        for statement in &query.stmts {
            let first = self.edits.len();
            for with in &statement.with_mods {
                self.expr(&with.r#as);
            }
            match &statement.literal {
                Literal::SomeVars { .. } if moved.contains(&statement.span.start) => {}
                Literal::SomeVars { vars, .. } => vars.iter().for_each(|name| self.rename(name)),
                Literal::SomeIn {
                    key,
                    value,
                    collection,
                    ..
                } => {
                    key.iter().for_each(|key| self.plain(key));
                    self.plain(value);
                    self.each(collection);
                }
                Literal::Expr { expr, .. } => match expr.as_ref() {
                    // The last argument may be a pattern for what comes out.
                    Expr::Call { params, .. } if !self.is_print(expr) => {
                        if let Some((last, rest)) = params.split_last() {
                            rest.iter().for_each(|param| self.expr(param));
                            self.loose(last);
                        }
                    }
                    _ => self.expr(expr),
                },
                Literal::NotExpr { expr, .. } => {
                    self.expr(expr);
                    let is_bare = query.span.start == statement.span.start;
                    self.negation(first, statement, expr, is_bare);
                }
                Literal::Every {
                    key,
                    value,
                    domain,
                    query,
                    ..
                } => {
                    self.each(domain);
                    let names = || key.iter().chain([value]);
                    let scope = self.new_names(names().map(|name| name.text()));
                    self.renamed.push(scope);
                    names().for_each(|name| self.rename(name));
                    self.query(query, &[]);
                    self.renamed.pop();
                }
            }
        }
    }

    /// Declarations are put before everything else: after an iteration, the interpreter would take the
    /// second time for a second declaration. Tells where those were that it moved.
    fn declarations(&mut self, query: &Query) -> Vec<u32> {
        let mut moved = Vec::new();
        let Some((first, rest)) = query.stmts.split_first() else {
            return moved;
        };
        let start = self.marks.whole(first.span.start, first.span.end).start;
        for statement in rest {
            let Literal::SomeVars { vars, .. } = &statement.literal else {
                continue;
            };
            let range = self.marks.whole(statement.span.start, statement.span.end);
            if self
                .text
                .get(range.clone())
                .is_none_or(|text| text.contains('\n'))
            {
                continue;
            }
            let new = |name: &Span| self.renamed(name.text()).unwrap_or(name.text().to_owned());
            let names: Vec<String> = vars.iter().map(new).collect();
            self.change(start..start, format!("some {}; ", names.join(", ")));
            self.change(range, "true".to_owned());
            moved.push(statement.span.start);
        }
        moved
    }

    /// What is iterated over. The interpreter fails if that cannot be; in OPA there is just nothing.
    fn each(&mut self, collection: &Expr) {
        match collection {
            Expr::Array { .. } | Expr::ArrayCompr { .. } => self.expr(collection),
            collection if is_made(collection) => self.expr(collection),
            _ => self.pass(collection, EACH),
        }
    }

    /// An operand. The interpreter fails if an operator does not take it; in OPA there is no result.
    fn operand(&mut self, operand: &Expr, function: &str) {
        match operand {
            Expr::Number { value, .. } if function == INTEGER && value.as_i128().is_err() => {
                self.pass(operand, function);
            }
            Expr::Number { .. } | Expr::Set { .. } | Expr::SetCompr { .. } => self.expr(operand),
            Expr::BinExpr { .. } => self.expr(operand),
            _ => self.pass(operand, function),
        }
    }

    /// Has a function look at a value.
    fn pass(&mut self, expr: &Expr, function: &str) {
        let first = self.edits.len();
        self.plain(expr);
        let range = self.marks.range(expr);
        let text = self.take(first, range.clone());
        let by = format!("{}{function}({text})", self.prefix);
        self.change(range, by);
    }

    /// Puts what a negation must not swallow before it, on the same line.
    fn negation(&mut self, first: usize, statement: &LiteralStmt, expr: &Expr, is_bare: bool) {
        let mut operands = Vec::new();
        negation::operands(expr, self.globals, &mut operands);
        let mut before = String::new();
        let mut withs = String::new();
        for with in &statement.with_mods {
            let range = self.marks.range(&with.r#as);
            let plain = self.text.get(range.clone()).unwrap_or_default();
            let value = match negation::is_hoisted(&with.r#as) || plain.contains('\n') {
                false => plain.to_owned(),
                true => {
                    let text = self.take(first, range.clone());
                    let name = self.name();
                    before.push_str(&format!("{name} := {text}; "));
                    self.change(range, name.clone());
                    name
                }
            };
            let target = self.marks.range(&with.refr);
            let target = self.text.get(target).unwrap_or_default();
            withs.push_str(&format!(" with {target} as {value}"));
        }
        for operand in operands {
            let range = self.marks.range(operand);
            let text = self.take(first, range.clone());
            let name = self.name();
            self.change(range, name.clone());
            self.grown = self.grown.saturating_add(text.len() + withs.len());
            if self.grown > REWRITTEN {
                return;
            }
            before.push_str(&format!("{name} := {text}{withs}; "));
        }
        if before.is_empty() {
            return;
        }
        let range = self.marks.whole(statement.span.start, statement.span.end);
        if is_bare {
            before.insert_str(0, "{ ");
            self.change(range.end..range.end, " }".to_owned());
        }
        self.change(range.start..range.start, before);
    }

    /// A value: what puts it together is weighed.
    fn expr(&mut self, expr: &Expr) {
        match is_made(expr) {
            true => self.pass(expr, LIGHT),
            false => self.plain(expr),
        }
    }

    /// The value or a key of a rule. What is only named may be what was not weighed, or what many such
    /// values are put together of by the rule.
    fn head(&mut self, expr: &Expr, is_bound: bool) {
        let is_name = matches!(
            expr,
            Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. }
        );
        match is_name && !(is_bound && negation::is_indexed(expr)) {
            true => self.pass(expr, LIGHT),
            false => self.expr(expr),
        }
    }

    /// What may be a pattern: it cannot be weighed, as some of its names may have no values yet.
    fn loose(&mut self, expr: &Expr) {
        if let Expr::Array { .. } | Expr::Set { .. } | Expr::Object { .. } = expr {
            self.count(expr);
            self.plain(expr);
        } else {
            self.expr(expr);
        }
    }

    /// Counts what is put together and not weighed.
    fn count(&mut self, expr: &Expr) {
        if is_made(expr) {
            self.doublings += leaves(expr).max(1).next_power_of_two().ilog2();
            self.levels += levels(expr);
        }
    }

    /// What a part is taken of.
    fn whole(&mut self, expr: &Expr) {
        self.count(expr);
        self.plain(expr);
    }

    fn is_print(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Call { fcn, .. } if self.prints && fcn.span().text() == "print")
    }

    /// An expression that is not weighed itself.
    fn plain(&mut self, expr: &Expr) {
        match expr {
            Expr::Array { items, .. } | Expr::Set { items, .. } => {
                items.iter().for_each(|item| self.plain(item));
            }
            Expr::Object { fields, .. } => {
                for (_, key, value) in fields {
                    self.both(key, value);
                }
            }
            Expr::Var { span, .. } => self.rename(span),
            Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
                self.query(query, &[Term::Part(term)]);
            }
            Expr::ObjectCompr {
                key, value, query, ..
            } => self.query(query, &[Term::Part(key), Term::Part(value)]),
            Expr::Call { .. } if self.is_print(expr) => {
                let range = self.marks.range(expr);
                let text = self.text.get(range.clone()).unwrap_or_default();
                let lines = text.matches('\n').count();
                self.change(range, format!("true{}", "\n".repeat(lines)));
            }
            Expr::Call { params, .. } => params.iter().for_each(|param| self.expr(param)),
            Expr::UnaryExpr { expr, .. } => self.expr(expr),
            Expr::RefDot { refr, .. } => self.whole(refr),
            Expr::RefBrack { refr, index, .. } => {
                self.whole(refr);
                self.plain(index);
            }
            Expr::BinExpr { lhs, rhs, .. } => {
                self.operand(lhs, SET);
                self.operand(rhs, SET);
            }
            Expr::BoolExpr { lhs, rhs, .. } => self.both(lhs, rhs),
            Expr::ArithExpr { op, lhs, rhs, .. } => {
                let function = match op {
                    ArithOp::Sub => TERM,
                    ArithOp::Mod => INTEGER,
                    _ => NUMBER,
                };
                self.operand(lhs, function);
                self.operand(rhs, function);
            }
            Expr::AssignExpr {
                op: AssignOp::ColEq,
                lhs,
                rhs,
                ..
            } => {
                self.plain(lhs);
                self.expr(rhs);
            }
            Expr::AssignExpr { lhs, rhs, .. } => {
                // Only what is equal to a name or a pattern can become a value of one.
                let binds = |expr: &Expr| match expr {
                    Expr::Var { .. } => true,
                    expr => is_made(expr),
                };
                match binds(lhs) && binds(rhs) {
                    true => [lhs, rhs].into_iter().for_each(|side| self.loose(side)),
                    false => self.both(lhs, rhs),
                }
            }
            Expr::Membership {
                key,
                value,
                collection,
                ..
            } => {
                key.iter().for_each(|key| self.plain(key));
                self.both(value, collection);
            }
            _ => {}
        }
    }

    fn both(&mut self, left: &Expr, right: &Expr) {
        self.plain(left);
        self.plain(right);
    }
}
