//! Which scalars of a thread stand for a tile.

use crate::ir::entities::Value;
use crate::ir::kernel::{Kernel, Tile, Tiling};
use crate::layout::{Digit, Dimension, ValueLayout};
use crate::mutants::mutant;
use rustc_hash::FxHashMap;

/// The registers of a tile in a thread: those of its layout, of which replicas are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The registers that are not a replica of a lower one, ascending.
    pub own: Vec<u64>,
    /// Digits of the register's number that move nothing.
    replicas: Vec<Digit>,
}

impl Shape {
    pub fn new(layout: &ValueLayout) -> Self {
        let of_registers = |digit: &Digit| digit.dimension == Dimension::Register;
        let replicas: Vec<Digit> = layout.replicas().into_iter().filter(of_registers).collect();
        let is_own = |register: &u64| {
            replicas.iter().all(|digit| (register / digit.position).is_multiple_of(digit.size))
        };
        let all = 0..layout.extent(Dimension::Register);
        let own =
            all.filter(|it| mutant!("lower_tiles: replicas in a thread count", is_own(it), true)).collect();
        Self { own, replicas }
    }

    /// The place in `own` of what a register of the layout holds.
    pub fn place(&self, register: u64) -> usize {
        let strip =
            |register: u64, digit: &Digit| register - register / digit.position % digit.size * digit.position;
        let stripped = self.replicas.iter().fold(register, strip);
        self.own.binary_search(&stripped).unwrap_or(0)
    }
}

/// The scalars of all values.
#[derive(Default)]
pub struct Registers {
    values: FxHashMap<Value, (Shape, Vec<Value>)>,
    shapes: FxHashMap<Tile, Shape>,
}

impl Registers {
    /// The registers of a tile; of a scalar it is one.
    pub fn shape(&mut self, tiling: &Tiling, tile: Tile) -> Shape {
        let scalar = || Shape { own: vec![0], replicas: Vec::new() };
        self.shapes.entry(tile).or_insert_with(|| tiling.layout(tile).map_or_else(scalar, Shape::new)).clone()
    }

    /// The registers of a value; of a tile of a storage type the first one of each word.
    pub fn shape_of(&mut self, kernel: &Kernel, tiling: &Tiling, value: Value) -> Shape {
        let mut shape = self.shape(tiling, kernel.tile(value));
        let scalar = kernel.value_type(value);
        if scalar.is_narrow() {
            shape.own = shape.own.into_iter().step_by((4 / scalar.size()) as usize).collect();
        }
        shape
    }

    /// Says what a value's own registers are.
    pub fn set(&mut self, value: Value, shape: Shape, scalars: Vec<Value>) {
        debug_assert_eq!(shape.own.len(), scalars.len());
        self.values.insert(value, (shape, scalars));
    }

    /// A value's own registers, and what stands for it in each.
    pub fn own(&self, value: Value) -> impl Iterator<Item = (u64, Value)> {
        let (shape, scalars) = &self.values[&value];
        shape.own.iter().copied().zip(scalars.iter().copied())
    }

    /// What stands for a value in a register of the layout that it has, without axes that it lacks.
    pub fn get(&self, value: Value, register: u64) -> Value {
        let (shape, scalars) = &self.values[&value];
        scalars[shape.place(register)]
    }
}
