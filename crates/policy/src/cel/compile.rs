//! From a text to an expression that can be evaluated, or to what is wrong with it and where. Names
//! and functions that there are not are found here, when a policy is loaded, and not by the first
//! object that meets them. How deep an expression goes is bounded, with everything that it refers to,
//! so that no evaluation can use up its stack; the parser has a stack of its own that its texts cannot
//! use up.

use super::functions;
use super::node::{Access, Comparison, Loop, Macro, Node, Operation};
use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators as op,
};
use cel::{Env, Program};

/// The longest expression, in bytes.
pub(super) const LENGTH: usize = 16 * 1024;
/// How deep an expression may be nested, variables that it refers to included.
const DEPTH: usize = 300;
/// The parser's stack, in bytes: some hundred times what the longest expression can need of it.
const STACK: usize = 64 * 1024 * 1024;

const TYPES: [&str; 11] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
];

/// What an API server has, and an audit has not.
const ABSENT: [(&str, &str); 4] = [
    ("authorizer", "nobody asks, whose rights could be looked up"),
    ("namespaceObject", "the namespace is not part of a request"),
    ("params", "there are no parameters"),
    (
        "variables",
        "its variables are asked for as `variables.<name>`",
    ),
];

/// A variable that was compiled before.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) node: Node,
    depth: usize,
}

impl Variable {
    pub(super) fn compile(name: &str, text: &str, known: &[Variable]) -> Result<Self, String> {
        let (node, depth) = read(text, known)?;
        let name = name.to_owned();
        Ok(Variable { name, node, depth })
    }
}

/// An expression that may refer to `known` variables.
pub(super) fn compile(text: &str, known: &[Variable]) -> Result<Node, String> {
    read(text, known).map(|(node, _)| node)
}

fn read(text: &str, known: &[Variable]) -> Result<(Node, usize), String> {
    if text.len() > LENGTH {
        return Err(format!("it is longer than {LENGTH} bytes"));
    }
    let compiled = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let thread = builder.spawn_scoped(scope, || parse(text, known));
        let thread = thread.map_err(|error| format!("it cannot be read now: {error}"))?;
        thread.join().map_err(|_| String::from("it cannot be read"))
    });
    compiled?
}

fn parse(text: &str, known: &[Variable]) -> Result<(Node, usize), String> {
    // Without macros: they are compiled here, as loops that count.
    let program: Program = Env::default().compile(text).map_err(|errors| {
        let first = errors.errors.into_iter().next();
        let Some(error) = first else {
            return "it is no expression".to_owned();
        };
        let (line, column) = error.pos;
        format!("line {line}, column {column}: {}", error.msg)
    })?;
    let mut compiler = Compiler {
        source: program.source_info(),
        known,
        locals: Vec::new(),
        reach: 0,
    };
    let node = compiler.node(program.expression(), 1)?;
    Ok((node, compiler.reach))
}

struct Compiler<'c> {
    source: &'c SourceInfo,
    known: &'c [Variable],
    locals: Vec<String>,
    /// How deep it goes.
    reach: usize,
}

impl Compiler<'_> {
    /// What is wrong, and where.
    fn wrong<T>(&self, id: u64, why: impl AsRef<str>) -> Result<T, String> {
        let offset = self.source.offset_for(id).map_or(0, |(start, _)| start);
        let before = self.source.source.chars().take(offset as usize);
        let (mut line, mut column) = (1, 1);
        for letter in before {
            match letter {
                '\n' => (line, column) = (line + 1, 1),
                _ => column += 1,
            }
        }
        Err(format!("line {line}, column {column}: {}", why.as_ref()))
    }

    fn node(&mut self, part: &IdedExpr, depth: usize) -> Result<Node, String> {
        self.reach = self.reach.max(depth);
        if self.reach > DEPTH {
            return self.wrong(part.id, "it is nested too deeply");
        }
        let below = depth + 1;
        match &part.expr {
            Expr::Literal(literal) => Ok(constant(literal)),
            Expr::Ident(name) => self.name(part.id, name),
            Expr::Select(select) => self.select(part.id, select, below),
            Expr::Call(call) => self.call(part.id, call, below),
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (index, item) in list.elements.iter().enumerate() {
                    let optional = list.optional_indices.contains(&index);
                    items.push((self.node(item, below)?, optional));
                }
                Ok(Node::List(items))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return self.wrong(part.id, "a map has keys and values");
                    };
                    let key = self.node(&entry.key, below)?;
                    entries.push((key, self.node(&entry.value, below)?, entry.optional));
                }
                Ok(Node::Map(entries))
            }
            Expr::Struct(message) => {
                let why = format!("there is no message type `{}`", message.type_name);
                self.wrong(part.id, why)
            }
            Expr::Comprehension(_) | Expr::Unspecified => self.wrong(part.id, "it is incomplete"),
        }
    }

    fn name(&mut self, id: u64, name: &str) -> Result<Node, String> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(place) = self.locals.iter().rposition(|local| local == name) {
            return Ok(Node::Local(place));
        }
        match name {
            "object" => return Ok(Node::Object),
            // What is created was not there before.
            "oldObject" => return Ok(Node::Null),
            "request" => return Ok(Node::Request),
            _ => {}
        }
        if let Some(kind) = TYPES.iter().find(|kind| **kind == name) {
            return Ok(Node::Type(kind));
        }
        match ABSENT.iter().find(|(absent, _)| *absent == name) {
            Some((_, why)) => self.wrong(id, format!("`{name}` cannot be used in an audit: {why}")),
            None => self.wrong(id, format!("there is no `{name}`")),
        }
    }

    fn is_name(&self, part: &IdedExpr, expected: &str) -> bool {
        let is = matches!(&part.expr, Expr::Ident(name) if name == expected);
        is && !self.locals.iter().any(|local| local == expected)
    }

    fn select(&mut self, id: u64, select: &SelectExpr, depth: usize) -> Result<Node, String> {
        let access = match select.test {
            true => Access::Presence,
            false => Access::Value,
        };
        if self.is_name(&select.operand, "variables") {
            let mut known = self.known.iter().enumerate();
            let Some((place, variable)) = known.find(|(_, known)| known.name == select.field)
            else {
                return self.wrong(id, format!("there is no variable `{}` yet", select.field));
            };
            self.reach = self.reach.max(depth + variable.depth);
            return match self.reach > DEPTH {
                true => self.wrong(id, "it is nested too deeply, with its variables"),
                false => Ok(Node::Variable(place)),
            };
        }
        let operand = self.node(&select.operand, depth)?;
        Ok(Node::Select(
            Box::new(operand),
            select.field.clone(),
            access,
        ))
    }

    fn call(&mut self, id: u64, call: &CallExpr, depth: usize) -> Result<Node, String> {
        let name = call.func_name.as_str();
        if let Some(target) = call.target.as_deref() {
            if let Some(node) = self.member_macro(id, name, target, &call.args, depth)? {
                return Ok(node);
            }
            if let Expr::Ident(space) = &target.expr
                && functions::SPACES.contains(&space.as_str())
                && !self.locals.contains(space)
            {
                let name = format!("{space}.{name}");
                return match (name.as_str(), call.args.as_slice()) {
                    ("cel.bind", [local, value, body]) => {
                        let value = self.node(value, depth)?;
                        let body = self.scoped(&[local], body, depth)?;
                        Ok(Node::Bind(Box::new([value, body])))
                    }
                    _ => self.function(id, &name, None, &call.args, depth),
                };
            }
            return self.function(id, name, Some(target), &call.args, depth);
        }
        if let [left, right] = call.args.as_slice()
            && let Some(node) = self.binary(name, [left, right], depth)?
        {
            return Ok(node);
        }
        match (name, call.args.as_slice()) {
            (op::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.node(condition, depth)?;
                let (yes, no) = (self.node(yes, depth)?, self.node(no, depth)?);
                Ok(Node::If(Box::new([condition, yes, no])))
            }
            (op::LOGICAL_NOT, [part]) => Ok(Node::Not(Box::new(self.node(part, depth)?))),
            (op::NEGATE, [part]) => Ok(Node::Negate(Box::new(self.node(part, depth)?))),
            ("has", [part]) => match &part.expr {
                Expr::Select(select) if !self.is_name(&select.operand, "variables") => {
                    let operand = Box::new(self.node(&select.operand, depth)?);
                    let field = select.field.clone();
                    Ok(Node::Select(operand, field, Access::Presence))
                }
                _ => self.wrong(id, "`has` asks for a field, as in `has(object.spec)`"),
            },
            _ => self.function(id, name, None, &call.args, depth),
        }
    }

    fn binary(
        &mut self,
        name: &str,
        parts: [&IdedExpr; 2],
        depth: usize,
    ) -> Result<Option<Node>, String> {
        let [left, right] = parts;
        if name == op::OPT_SELECT {
            let Expr::Literal(LiteralValue::String(field)) = &right.expr else {
                return self.wrong(right.id, "a field has a name");
            };
            let operand = Box::new(self.node(left, depth)?);
            let field = field.inner().to_owned();
            return Ok(Some(Node::Select(operand, field, Access::Optional)));
        }
        let make: fn(Box<[Node; 2]>) -> Node = match name {
            op::LOGICAL_AND => Node::And,
            op::LOGICAL_OR => Node::Or,
            op::EQUALS => |both| Node::Equal(both, true),
            op::NOT_EQUALS => |both| Node::Equal(both, false),
            op::LESS => |both| Node::Compare(both, Comparison::Less),
            op::LESS_EQUALS => |both| Node::Compare(both, Comparison::LessOrEqual),
            op::GREATER => |both| Node::Compare(both, Comparison::Greater),
            op::GREATER_EQUALS => |both| Node::Compare(both, Comparison::GreaterOrEqual),
            op::ADD => |both| Node::Arithmetic(both, Operation::Add),
            op::SUBSTRACT => |both| Node::Arithmetic(both, Operation::Subtract),
            op::MULTIPLY => |both| Node::Arithmetic(both, Operation::Multiply),
            op::DIVIDE => |both| Node::Arithmetic(both, Operation::Divide),
            op::MODULO => |both| Node::Arithmetic(both, Operation::Remainder),
            op::IN => Node::In,
            op::INDEX => |both| Node::Index(both, Access::Value),
            op::OPT_INDEX => |both| Node::Index(both, Access::Optional),
            _ => return Ok(None),
        };
        let both = [self.node(left, depth)?, self.node(right, depth)?];
        Ok(Some(make(Box::new(both))))
    }

    /// A part in which some more names are bound.
    fn scoped(
        &mut self,
        names: &[&IdedExpr],
        body: &IdedExpr,
        depth: usize,
    ) -> Result<Node, String> {
        let before = self.locals.len();
        for name in names {
            match &name.expr {
                Expr::Ident(name) => self.locals.push(name.clone()),
                _ => return self.wrong(name.id, "a macro binds a name, which must be one"),
            }
        }
        let node = self.node(body, depth);
        self.locals.truncate(before);
        node
    }

    fn member_macro(
        &mut self,
        id: u64,
        name: &str,
        target: &IdedExpr,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Option<Node>, String> {
        if matches!(name, "optMap" | "optFlatMap") {
            let [local, body] = arguments else {
                return self.wrong(id, format!("`{name}` takes a name and an expression"));
            };
            let target = self.node(target, depth)?;
            let body = self.scoped(&[local], body, depth)?;
            let both = Box::new([target, body]);
            return Ok(Some(Node::OptionalMap(both, name == "optFlatMap")));
        }
        let what = match name {
            "all" => Macro::All,
            "exists" => Macro::Exists,
            "exists_one" | "existsOne" => Macro::ExistsOne,
            "map" | "transformList" => Macro::Map,
            "filter" => Macro::Filter,
            "transformMap" => Macro::Entries,
            _ => return Ok(None),
        };
        let transforms = name.starts_with("transform");
        let (names, filter, body) = match (arguments, what) {
            ([one, body], _) if !transforms => (vec![one], None, body),
            ([one, filter, body], Macro::Map) if !transforms => (vec![one], Some(filter), body),
            ([one, two, body], Macro::All | Macro::Exists | Macro::ExistsOne) => {
                (vec![one, two], None, body)
            }
            ([one, two, body], _) if transforms => (vec![one, two], None, body),
            ([one, two, filter, body], _) if transforms => (vec![one, two], Some(filter), body),
            _ => {
                let why = format!("`{name}` takes names to bind and an expression");
                return self.wrong(id, why);
            }
        };
        let range = self.node(target, depth)?;
        let filter = match filter {
            Some(filter) => Some(self.scoped(&names, filter, depth)?),
            None => None,
        };
        let body = self.scoped(&names, body, depth)?;
        let pairs = names.len() == 2;
        Ok(Some(Node::Loop(Box::new(Loop {
            range,
            what,
            pairs,
            filter,
            body,
        }))))
    }

    fn function(
        &mut self,
        id: u64,
        name: &str,
        target: Option<&IdedExpr>,
        arguments: &[IdedExpr],
        depth: usize,
    ) -> Result<Node, String> {
        let count = arguments.len() + usize::from(target.is_some());
        let mut nodes = Vec::with_capacity(count);
        // What is wrong with the target is told first: it comes first.
        if let Some(target) = target {
            nodes.push(self.node(target, depth)?);
        }
        let function = match functions::find(name, target.is_some(), count) {
            Ok(function) => function,
            Err(why) => return self.wrong(id, why),
        };
        for part in arguments {
            let node = match (&part.expr, function.is_pattern(nodes.len())) {
                (Expr::Literal(LiteralValue::String(text)), true) => {
                    match functions::pattern(text.inner()) {
                        Ok(pattern) => Node::Pattern(Box::new(pattern)),
                        Err(why) => return self.wrong(part.id, why),
                    }
                }
                _ => self.node(part, depth)?,
            };
            nodes.push(node);
        }
        Ok(Node::Call(function, nodes))
    }
}

fn constant(literal: &LiteralValue) -> Node {
    match literal {
        LiteralValue::Null => Node::Null,
        LiteralValue::Boolean(value) => Node::Bool(*value.inner()),
        LiteralValue::Int(value) => Node::Int(*value.inner()),
        LiteralValue::UInt(value) => Node::Uint(*value.inner()),
        LiteralValue::Double(value) => Node::Double(*value.inner()),
        LiteralValue::String(value) => Node::Text(value.inner().to_owned()),
        LiteralValue::Bytes(value) => Node::Bytes(value.inner().to_vec()),
    }
}
