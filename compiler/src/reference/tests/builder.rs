//! A small builder of typed kernels by hand, and of inputs, for tests that must not wait for (or trust) the
//! front end.

use crate::check::typed::*;
use crate::data::{ElementType, HostArray, Scalar};
use crate::reference::{EvalError, Inputs, Options, Outputs, evaluate, initial_statics, write_bytes};
use crate::reference::{Plain, bound::Format};
use crate::source::Span;
use crate::syntax::ast::ReduceOp;
use cranelift_entity::PrimaryMap;
use std::collections::BTreeMap;

pub struct Build {
    pub program: Program,
    pub kernel: Kernel,
}

pub fn expr(kind: ExprKind, ty: Type) -> Expr {
    Expr { kind, ty, span: Span::default() }
}

pub fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: Span::default() }
}

pub fn block(statements: Vec<Stmt>) -> Block {
    Block { statements, value: None }
}

pub fn value_block(value: Expr) -> Block {
    Block { statements: Vec::new(), value: Some(Box::new(value)) }
}

pub fn int(value: i128) -> Expr {
    expr(ExprKind::Int(value), Type::I64)
}

pub fn int_of(value: i128, ty: Type) -> Expr {
    expr(ExprKind::Int(value), ty)
}

pub fn float(value: f32) -> Expr {
    expr(ExprKind::Float(f64::from(value)), Type::F32)
}

pub fn index(id: IndexId) -> Expr {
    expr(ExprKind::Index(id), Type::I64)
}

pub fn dim(id: DimId) -> Expr {
    expr(ExprKind::Dim(id), Type::I64)
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let ty = left.ty.clone();
    expr(ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, ty)
}

pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
    expr(ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) }, Type::BOOL)
}

pub fn call(builtin: Builtin, arguments: Vec<Expr>, ty: Type) -> Expr {
    expr(ExprKind::Call { builtin, arguments }, ty)
}

pub fn cast(operand: Expr, to: Scalar) -> Expr {
    expr(ExprKind::Cast { operand: Box::new(operand), to }, Type::Scalar(to.widened()))
}

pub fn axis(index: IndexId, low: Expr, high: Expr) -> Axis {
    Axis { index, low, high, ends: Ends::written(false) }
}

pub fn reduce(op: ReduceOp, axes: Vec<Axis>, body: Expr, ty: Type) -> Expr {
    expr(ExprKind::Reduce { op: op.into(), axes, body: Box::new(body) }, ty)
}

impl Build {
    pub fn new() -> Self {
        let kernel = Kernel {
            name: "k".into(),
            span: Span::default(),
            dims: PrimaryMap::new(),
            params: PrimaryMap::new(),
            arrays: PrimaryMap::new(),
            signature: Vec::new(),
            facts: Vec::new(),
            injections: Vec::new(),
            locals: PrimaryMap::new(),
            indices: PrimaryMap::new(),
            sites: PrimaryMap::new(),
            reductions: PrimaryMap::new(),
            body: Vec::new(),
            schedules: Vec::new(),
        };
        Build { program: Program::default(), kernel }
    }

    pub fn dim(&mut self, name: &str, array: ArrayId, axis: usize) -> DimId {
        self.kernel.dims.push(Dim {
            name: name.into(),
            span: Span::default(),
            array,
            axis,
            extent: Default::default(),
        })
    }

    pub fn element(&self, ty: &Type) -> ElementType {
        match ty {
            Type::Scalar(scalar) => ElementType::scalar(*scalar),
            Type::Struct(id) => self.program.structs[*id].element.clone(),
            Type::Array(..) => panic!("no element is a fixed array"),
        }
    }

    pub fn array(&mut self, name: &str, role: ArrayRole, ty: Type, extents: Vec<Expr>) -> ArrayId {
        let element = self.element(&ty);
        self.kernel.arrays.push(Array {
            name: name.into(),
            span: Span::default(),
            role,
            ty,
            element,
            extents,
        })
    }

    /// `name: ty[n]`, with its own dimension.
    pub fn vector(&mut self, name: &str, role: ArrayRole, ty: Type, dim_name: &str) -> (ArrayId, DimId) {
        let array = self.array(name, role, ty, Vec::new());
        let id = self.dim(dim_name, array, 0);
        self.kernel.arrays[array].extents = vec![dim(id)];
        (array, id)
    }

    pub fn param(&mut self, name: &str, ty: Type) -> Expr {
        let Type::Scalar(scalar) = &ty else { panic!("scalars only") };
        let wide = Type::Scalar(scalar.widened());
        let id = self.kernel.params.push(Param { name: name.into(), ty, span: Span::default() });
        expr(ExprKind::Param(id), wide)
    }

    pub fn index(&mut self, name: &str) -> IndexId {
        self.kernel.indices.push(Index { name: name.into(), span: Span::default() })
    }

    pub fn local(&mut self, name: &str, ty: Type) -> LocalId {
        self.kernel.locals.push(Local { name: name.into(), ty, mutable: true, span: Span::default() })
    }

    pub fn use_local(&self, id: LocalId) -> Expr {
        expr(ExprKind::Local(id), self.kernel.locals[id].ty.clone())
    }

    pub fn structure(&mut self, name: &str, fields: &[(&str, Type)], element: ElementType) -> StructId {
        let fields = fields
            .iter()
            .map(|(name, ty)| StructField { name: (*name).into(), ty: ty.clone(), span: Span::default() })
            .collect();
        self.program.structs.push(StructDef { name: name.into(), fields, span: Span::default(), element })
    }

    pub fn access(&self, array: ArrayId, subscripts: Vec<Expr>) -> Access {
        let checks = vec![BoundsCheck::Proved; subscripts.len()];
        Access { array, subscripts, checks, span: Span::default() }
    }

    /// An access all of whose subscripts are checked on the device.
    pub fn checked(&mut self, array: ArrayId, subscripts: Vec<Expr>) -> Access {
        let name = self.kernel.arrays[array].name.clone();
        let mut access = self.access(array, subscripts);
        for (axis, check) in access.checks.iter_mut().enumerate() {
            let site = Site {
                span: Span::default(),
                array: name.clone(),
                axis,
                unsigned: false,
                injection: None,
                assertion: None,
                print: None,
                printed: false,
            };
            *check = BoundsCheck::Runtime(self.kernel.sites.push(site));
        }
        access
    }

    /// A load, of the widened element type.
    pub fn load(&self, array: ArrayId, subscripts: Vec<Expr>) -> Expr {
        self.load_of(self.access(array, subscripts))
    }

    pub fn load_of(&self, access: Access) -> Expr {
        let ty = match &self.kernel.arrays[access.array].ty {
            Type::Scalar(scalar) => Type::Scalar(scalar.widened()),
            other => other.clone(),
        };
        expr(ExprKind::Load { access, path: Vec::new(), otherwise: None }, ty)
    }

    pub fn store(&mut self, axes: Vec<Axis>, access: Access, combine: Option<CombineOp>, value: Expr) {
        self.kernel.body.push(store(axes, access, combine, value));
    }

    /// Runs with given params and arrays.
    pub fn run(
        &self,
        params: &[(&str, HostArray)],
        arrays: &[(&str, &HostArray)],
    ) -> Result<Outputs, EvalError> {
        self.run_with(params, arrays, &Options::default())
    }

    pub fn run_with(
        &self,
        params: &[(&str, HostArray)],
        arrays: &[(&str, &HostArray)],
        options: &Options,
    ) -> Result<Outputs, EvalError> {
        let statics = initial_statics(&self.program);
        evaluate(&self.inputs(params, arrays, &statics), options)
    }

    pub fn inputs<'a>(
        &'a self,
        params: &[(&str, HostArray)],
        arrays: &[(&str, &'a HostArray)],
        statics: &'a BTreeMap<String, HostArray>,
    ) -> Inputs<'a> {
        Inputs {
            program: &self.program,
            kernel: &self.kernel,
            dims: BTreeMap::new(),
            params: params.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            arrays: arrays.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            statics: statics.iter().map(|(name, value)| (name.clone(), value)).collect(),
        }
    }
}

pub fn store(axes: Vec<Axis>, access: Access, combine: Option<CombineOp>, value: Expr) -> Stmt {
    let combine = combine.map(|op| Combine { op, may_meet: true });
    stmt(StmtKind::Store { axes, access, path: Vec::new(), combine, value })
}

/// An array of scalars, each converted from a float (narrow types round or saturate).
pub fn host(scalar: Scalar, shape: &[u64], values: &[f64]) -> HostArray {
    let mut array = HostArray::zeros(ElementType::scalar(scalar), shape.to_vec()).expect("small");
    assert_eq!(array.len() as usize, values.len());
    for (bytes, value) in array.bytes.chunks_exact_mut(scalar.size() as usize).zip(values) {
        let plain = match Format::of(scalar) {
            Some(_) => Plain::float(*value, scalar.widened()),
            None if scalar == Scalar::Bool => Some(Plain::Bool(*value != 0.0)),
            None => Plain::wrapped(*value as i128, scalar.widened()),
        };
        assert!(write_bytes(bytes, scalar, plain.expect("a scalar")));
    }
    array
}

pub fn f32s(values: &[f32]) -> HostArray {
    let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    host(Scalar::F32, &[values.len() as u64], &values)
}

/// The scalars of an output, as floats.
pub fn numbers(outputs: &Outputs, name: &str) -> Vec<f64> {
    let output = outputs.arrays.get(name).or_else(|| outputs.statics.get(name)).expect("an output");
    let scalar = output.element.as_scalar().expect("a scalar array");
    let read = |bytes: &[u8]| {
        let plain = crate::reference::read_bytes(bytes, scalar);
        plain.as_float().unwrap_or_else(|| plain.as_integer().map_or(f64::NAN, |value| value as f64))
    };
    output.bytes.chunks_exact(scalar.size() as usize).map(read).collect()
}
