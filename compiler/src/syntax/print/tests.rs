//! `parse(print(tree)) == tree`, spans aside, for trees made from random choices.
//!
//! A tree is grown from a list of bytes, each a choice; when they run out every choice is the simplest. So
//! proptest, which shortens and lowers the bytes of a failure, shrinks the tree with them.

use super::super::ast::*;
use super::super::parse;
use super::print;
use crate::source::{SourceFile, Span};
use proptest::prelude::*;

struct Grower<'b> {
    bytes: std::slice::Iter<'b, u8>,
    depth: usize,
}

const AT: Span = Span { start: 0, end: 0 };

fn id(name: &str) -> Ident {
    Ident { name: name.to_string(), span: AT }
}

impl Grower<'_> {
    fn choose(&mut self, options: usize) -> usize {
        self.bytes.next().map_or(0, |byte| *byte as usize % options)
    }

    fn some<T>(&mut self, most: usize, mut grow: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.choose(most + 1)).map(|_| grow(self)).collect()
    }

    fn some_or_one<T>(&mut self, grow: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut grow = grow;
        let mut list = vec![grow(self)];
        list.extend(self.some(2, grow));
        list
    }

    fn maybe<T>(&mut self, grow: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.choose(2) == 1).then(|| grow(self))
    }

    fn name(&mut self) -> Ident {
        id(["a", "b", "min", "sum", "i", "tile"][self.choose(6)])
    }

    fn file(&mut self) -> File {
        File { items: self.some_or_one(Self::item), ..File::default() }
    }

    fn item(&mut self) -> Item {
        let name = self.name();
        match self.choose(6) {
            0 => Item::Const(ConstItem { name, ty: self.ty(), value: self.expr(), span: AT }),
            1 => Item::Static(StaticItem { name, ty: self.ty(), value: self.maybe(Self::expr), span: AT }),
            2 => Item::Struct(StructItem { name, fields: self.some(3, Self::typed), span: AT }),
            3 => Item::Function(FunctionItem {
                name,
                params: self.some(3, Self::typed),
                result: self.ty(),
                identity: self.maybe(Self::expr),
                body: self.block(true),
                span: AT,
            }),
            4 => Item::Kernel(KernelItem {
                name,
                params: self.some(5, |g| Param { name: g.name(), inout: g.maybe(|_| AT), ty: g.ty() }),
                results: self.some(2, Self::typed),
                facts: self.some(2, Self::fact),
                body: self.block(false),
                span: AT,
            }),
            _ => Item::Schedule(ScheduleItem {
                kernel: self.maybe(Self::name),
                target: self.maybe(Self::name),
                conditions: self.some(2, Self::expr),
                directives: self.some(3, |g| Directive {
                    name: g.name(),
                    arguments: g.some(2, Self::argument),
                    span: AT,
                }),
                span: AT,
            }),
        }
    }

    /// A condition, or `injective(idx in lo..hi)`.
    fn fact(&mut self) -> Expr {
        if self.choose(4) > 0 {
            return self.expr();
        }
        let values = ExprKind::Ranged { name: self.name(), range: Box::new(self.range()) };
        let arguments = vec![Expr { kind: values, span: AT }];
        Expr { kind: ExprKind::Call { callee: id("injective"), arguments }, span: AT }
    }

    fn argument(&mut self) -> DirectiveArgument {
        DirectiveArgument {
            subject: self.directive_value(),
            value: self.maybe(Self::directive_value),
            modifiers: self.some(2, |g| (g.name(), g.maybe(|_| DirectiveValue::Number(7, AT)))),
            span: AT,
        }
    }

    fn directive_value(&mut self) -> DirectiveValue {
        match self.choose(3) {
            0 => DirectiveValue::Number(32, AT),
            1 => DirectiveValue::Name(self.name()),
            _ => DirectiveValue::Call(self.name(), 4, AT),
        }
    }

    fn typed(&mut self) -> TypedName {
        TypedName { name: self.name(), ty: self.ty() }
    }

    fn ty(&mut self) -> TypeExpr {
        TypeExpr { name: self.name(), extents: self.maybe(|g| g.some_or_one(Self::expr)), span: AT }
    }

    fn block(&mut self, value: bool) -> Block {
        self.depth += 1;
        let statements = if self.depth > 5 { Vec::new() } else { self.some(3, Self::stmt) };
        let value = if value { self.maybe(|g| Box::new(g.expr())) } else { None };
        self.depth -= 1;
        Block { statements, value, span: AT }
    }

    fn axis(&mut self) -> AxisDecl {
        AxisDecl { name: self.name(), range: self.maybe(Self::range) }
    }

    fn range(&mut self) -> Range {
        let low = self.maybe(Self::expr);
        Range { inclusive: low.is_some() && self.choose(2) == 1, low, high: self.expr(), span: AT }
    }

    fn stmt(&mut self) -> Stmt {
        let kind = match self.choose(7) {
            0 => StmtKind::Assign {
                target: self.target(),
                op: self.assign_op(),
                op_span: AT,
                value: self.expr(),
            },
            1 => StmtKind::Let {
                mutable: self.choose(2) == 1,
                name: self.name(),
                axes: self.maybe(|g| g.some_or_one(Self::axis)),
                ty: self.maybe(Self::ty),
                value: self.expr(),
            },
            2 => StmtKind::Forall { axes: self.some_or_one(Self::axis), body: self.block(false) },
            3 => StmtKind::For {
                name: self.name(),
                range: self.range(),
                step: self.maybe(Self::expr),
                body: self.block(false),
            },
            4 => StmtKind::While { condition: self.expr(), body: self.block(false) },
            5 => StmtKind::Assert { condition: self.expr() },
            6 => StmtKind::Print { operands: self.some(3, Self::expr) },
            _ => StmtKind::If {
                condition: self.expr(),
                then: self.block(false),
                otherwise: self.maybe(|g| g.block(false)),
            },
        };
        Stmt { kind, span: AT }
    }

    fn left_subscript(&mut self) -> Expr {
        if self.choose(4) > 0 {
            return self.expr();
        }
        let kind = ExprKind::Ranged { name: self.name(), range: Box::new(self.range()) };
        Expr { kind, span: AT }
    }

    fn assign_op(&mut self) -> AssignOp {
        use AssignOp as A;
        let all = [
            A::Set,
            A::Add,
            A::Sub,
            A::Mul,
            A::Div,
            A::Rem,
            A::Shl,
            A::Shr,
            A::Min,
            A::Max,
            A::And,
            A::Or,
            A::Xor,
        ];
        all[self.choose(all.len())]
    }

    fn target(&mut self) -> Expr {
        let name = self.name();
        let base = Expr { kind: ExprKind::Name(name), span: AT };
        self.postfixes(base)
    }

    fn postfixes(&mut self, mut base: Expr) -> Expr {
        for _ in 0..self.choose(3) {
            let kind = match self.choose(2) {
                0 => ExprKind::Index {
                    base: Box::new(base),
                    subscripts: self.some_or_one(Self::left_subscript),
                },
                _ => ExprKind::Field { base: Box::new(base), field: self.name() },
            };
            base = Expr { kind, span: AT };
        }
        base
    }

    fn expr(&mut self) -> Expr {
        self.depth += 1;
        let kind = self.expr_kind(if self.depth > 6 { 4 } else { 16 });
        self.depth -= 1;
        Expr { kind, span: AT }
    }

    fn boxed(&mut self) -> Box<Expr> {
        Box::new(self.expr())
    }

    fn suffix(&mut self, name: &str) -> Option<Suffix> {
        self.maybe(|_| Suffix { name: name.to_string(), span: AT })
    }

    fn expr_kind(&mut self, options: usize) -> ExprKind {
        match self.choose(options) {
            0 => ExprKind::Name(self.name()),
            1 => ExprKind::Int { value: [0, 7, u128::MAX][self.choose(3)], suffix: self.suffix("i32") },
            2 => {
                let text = ["1.5", "2.", "3e-7", "0.25E+3"][self.choose(4)];
                let suffix = if text == "2." { None } else { self.suffix("f32") };
                ExprKind::Float { value: text.parse().unwrap(), text: text.to_string(), suffix }
            }
            3 => ExprKind::Bool(self.choose(2) == 1),
            4 | 5 => {
                use BinaryOp as B;
                let all = [
                    B::Add,
                    B::Sub,
                    B::Mul,
                    B::Div,
                    B::Rem,
                    B::Shl,
                    B::Shr,
                    B::BitAnd,
                    B::BitOr,
                    B::BitXor,
                    B::And,
                    B::Or,
                    B::Equal,
                    B::NotEqual,
                    B::Less,
                    B::LessEqual,
                    B::Greater,
                    B::GreaterEqual,
                ];
                let op = all[self.choose(all.len())];
                ExprKind::Binary { op, op_span: AT, left: self.boxed(), right: self.boxed() }
            }
            6 => {
                ExprKind::Unary { op: [UnaryOp::Negate, UnaryOp::Not][self.choose(2)], operand: self.boxed() }
            }
            7 => ExprKind::Cast {
                operand: self.boxed(),
                ty: TypeExpr { name: self.name(), extents: None, span: AT },
            },
            8 => ExprKind::Call { callee: self.name(), arguments: self.some(3, Self::expr) },
            9 => {
                use ReduceOp as R;
                let all = [R::Sum, R::Prod, R::Min, R::Max, R::Any, R::All, R::ArgMin, R::ArgMax, R::Count];
                let op = all[self.choose(all.len())];
                let word = Ident { name: format!("{op:?}").to_lowercase(), span: AT };
                ExprKind::Reduce {
                    op: Some(op),
                    word,
                    axes: self.some_or_one(Self::axis),
                    body: self.boxed(),
                }
            }
            10 => {
                let base = self.expr();
                self.postfixes(base).kind
            }
            11 => {
                let base = self.expr();
                let subscripts = self.some_or_one(Self::expr);
                let access = Expr { kind: ExprKind::Index { base: Box::new(base), subscripts }, span: AT };
                ExprKind::Guarded { access: Box::new(access), otherwise: self.boxed() }
            }
            12 => {
                ExprKind::StructLiteral { name: self.name(), fields: self.some(2, |g| (g.name(), g.expr())) }
            }
            13 => ExprKind::ArrayLiteral(self.some(3, Self::expr)),
            14 => {
                ExprKind::If { condition: self.boxed(), then: self.block(true), otherwise: self.block(true) }
            }
            _ => ExprKind::Block(self.block(true)),
        }
    }
}

/// The tree as text without spans, which alone print as `12..34`.
fn without_spans(file: &File) -> String {
    let text = format!("{file:#?}");
    let is_span = |line: &&str| {
        line.trim().trim_end_matches(',').split_once("..").is_some_and(|(_, end)| end.parse::<u32>().is_ok())
    };
    text.lines()
        .filter(|line| {
            !line.trim_start().starts_with("span: ") && !line.trim_start().starts_with("op_span: ")
        })
        .map(|line| if is_span(&line) { "SPAN" } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

fn round_trip(tree: &File) -> Result<(), String> {
    let text = print(tree);
    let file = SourceFile::new("printed.krn", text.as_str());
    let (again, reports) = parse(&file);
    if reports.iter().any(|report| report.code.0 == "E0013") {
        // Deeper than the language allows.
        return Ok(());
    }
    if !reports.is_empty() {
        return Err(format!(
            "{text}\n{}",
            crate::diagnostic::render::render(&file, &reports, Default::default())
        ));
    }
    if without_spans(tree) != without_spans(&again) {
        return Err(format!("another tree came back:\n{text}\n{}", print(&again)));
    }
    if print(&again) != text {
        return Err(format!("printing is not stable:\n{text}\n{}", print(&again)));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_printed_parses_to_the_same_tree(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let tree = Grower { bytes: bytes.iter(), depth: 0 }.file();
        if let Err(report) = round_trip(&tree) {
            return Err(TestCaseError::fail(report));
        }
    }
}

#[test]
fn the_printed_form_reads_well() {
    let source = "struct V{x:f32,y:f32}
const A:f32[2]=[1.0,-2.0]
static hits:u32
fn f(a:V,b:f32)->f32{let d=a.x-b; if d<0.0{-d}else if d>1.0{1.0}else{(d+1.0)*2.0}}
kernel k(alpha:f32,x:f32[n,m],y:inout f32[n])->z:f32[n-1],total:f32 where n%32==0,m<=8192{forall i in n,j in 0..m{if x[i,j]>0.0{y[i]+=x[i,j]}else if i==0{hits+=1}else{y[i]max=0.0}}
for s in 0..=n step 2{z[i]=sum(p in 0..s,q:x[p,q] as f32)*(x[i-1,0]else 0.0)}
while !done{let e[c]=V{x:1.0,y:x[c,0]}.x}}
schedule k for sm_90{tile i:32,j:32;stage x pad 1 depth 2;layout y:aosoa(32);fast_math}";
    let (tree, reports) = parse(&SourceFile::new("t.krn", source));
    assert!(reports.is_empty(), "{reports:?}");
    insta::assert_snapshot!(print(&tree));
}
