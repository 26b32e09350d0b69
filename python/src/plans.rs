//! What calls of a kernel come to, worked out once for arrays of some shapes; and the emulator's calls. Without Python: XLA
//! calls as well.

use crate::devices::{self, Place};
use crate::module::File;
use crate::signature::{Argument, Signature};
use crate::tensor::{Shape, Tensor};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::manifest::Layout;
use krn_runtime::{Error, Given, GuestPlan, HostMapping, Launcher, Result};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Plans that a kernel keeps: the oldest goes for the next one.
const PLANS: usize = 64;

/// By argument: the shape of the array that was given; nothing for values, and for results that were not given.
pub type Shapes = SmallVec<[Option<Shape>; 8]>;

/// An array in memory of the host.
pub struct Piece {
    pub argument: usize,
    pub start: usize,
    pub bytes: usize,
}

/// A plan, and the arguments that it serves.
pub struct Known {
    place: Place,
    shapes: Shapes,
    /// The bytes of values that the plan is for alone, where they lie.
    decisive: Vec<(std::ops::Range<usize>, Vec<u8>)>,
    pub plan: GuestPlan,
}

impl Known {
    pub fn place(&self) -> Place {
        self.place
    }

    #[inline]
    fn serves(&self, place: Place, tensors: &[Option<Tensor>], values: &[u8]) -> bool {
        self.place == place
            && self.shapes.iter().zip(tensors).all(|(known, given)| match (known, given) {
                // Extent by extent: there are few.
                (Some(known), Some(given)) => {
                    known.len() == given.shape.len()
                        && known.iter().zip(&given.shape).all(|(known, given)| known == given)
                }
                (None, None) => true,
                _ => false,
            })
            && self.decides(values)
    }

    #[inline]
    fn decides(&self, values: &[u8]) -> bool {
        self.decisive.iter().all(|(range, known)| values[range.clone()] == **known)
    }
}

/// A kernel, and the plans of its calls.
pub struct Plans {
    file: Arc<File>,
    pub signature: Arc<Signature>,
    launchers: Mutex<Vec<(Place, Launcher)>>,
    known: Mutex<Vec<Arc<Known>>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves what it guards whole: it is changed in single steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plans {
    pub fn new(file: &Arc<File>, signature: Arc<Signature>) -> Self {
        let (launchers, known) = (Mutex::default(), Mutex::default());
        Self { file: Arc::clone(file), signature, launchers, known }
    }

    /// How many are known now.
    pub fn count(&self) -> usize {
        lock(&self.known).len()
    }

    /// The plan for these arrays, if it is known.
    #[inline]
    pub fn find(&self, place: Place, tensors: &[Option<Tensor>], values: &[u8]) -> Option<Arc<Known>> {
        lock(&self.known).iter().find(|known| known.serves(place, tensors, values)).cloned()
    }

    /// Works out what a call comes to, and keeps it.
    #[cold]
    pub fn plan(&self, place: Place, shapes: Shapes, values: &[u8], stream: usize) -> Result<Arc<Known>> {
        let signature = &*self.signature;
        let value = |(at, argument): (usize, &Argument)| match argument {
            Argument::Value(element) => {
                let bytes = values[signature.layout.values[at].clone()].to_vec();
                Some(HostArray { element: element.clone(), shape: Vec::new(), bytes })
            }
            Argument::Array(_) => None,
        };
        let host: Vec<Option<HostArray>> = signature.arguments.iter().enumerate().map(value).collect();
        let launcher = self.launcher(place)?;
        let given: Vec<Given<'_>> = signature
            .arguments
            .iter()
            .zip(&host)
            .zip(&shapes)
            .map(|((argument, value), shape)| match (argument, value, shape) {
                (_, Some(value), _) => Given::Value(value),
                (Argument::Array(array), _, Some(shape)) => Given::Array { element: &array.element, shape },
                _ => Given::Absent,
            })
            .collect();
        // SAFETY: the stream is the current one of its library, or the one that the user has named.
        let plan = unsafe { launcher.plan_as_guest(&given, std::ptr::with_exposed_provenance_mut(stream)) }?;
        let decisive = (0..signature.arguments.len()).filter(|at| plan.is_decisive(*at)).map(|at| {
            let range = signature.layout.values[at].clone();
            (range.clone(), values[range].to_vec())
        });
        let known = Arc::new(Known { place, shapes, decisive: decisive.collect(), plan });
        let mut plans = lock(&self.known);
        if plans.len() == PLANS {
            plans.remove(0);
        }
        plans.push(Arc::clone(&known));
        Ok(known)
    }

    /// The plan for arrays of these shapes, known or new.
    pub fn plan_for(&self, place: Place, shapes: Shapes, values: &[u8], stream: usize) -> Result<Arc<Known>> {
        let fits =
            |known: &&Arc<Known>| known.place == place && known.shapes == shapes && known.decides(values);
        let known = lock(&self.known).iter().find(fits).cloned();
        known.map_or_else(|| self.plan(place, shapes, values, stream), Ok)
    }

    /// The kernel on a device.
    pub fn launcher(&self, place: Place) -> Result<Launcher> {
        if let Some((_, launcher)) = lock(&self.launchers).iter().find(|(known, _)| *known == place) {
            return Ok(launcher.clone());
        }
        let launcher = Launcher::new(&self.file.on(place)?, &self.signature.kernel)?;
        let mut launchers = lock(&self.launchers);
        if let Some((_, launcher)) = launchers.iter().find(|(known, _)| *known == place) {
            return Ok(launcher.clone());
        }
        launchers.push((place, launcher.clone()));
        Ok(launcher)
    }

    /// Runs on the emulator, on the arrays where they are.
    pub fn emulate(&self, plan: &GuestPlan, pieces: &[Piece], values: &[u8]) -> Result<()> {
        self.check_pieces(pieces)?;
        let device = devices::device(Place::Host)?;
        let scratch = match plan.scratch_bytes() {
            0 => None,
            bytes => Some(device.zeros(ElementType::scalar(Scalar::U8), vec![bytes], Layout::Aos)?),
        };
        let map = |piece: &Piece| {
            let (start, name) =
                (std::ptr::with_exposed_provenance_mut(piece.start), &self.signature.texts[piece.argument]);
            // SAFETY: the library has said that so many bytes lie there; the caller holds the object that owns them, and
            // what is written may be written. Who uses them from another thread meanwhile races as with any other
            // function on arrays.
            unsafe { device.map_host(start, piece.bytes, !self.signature.writes(piece.argument), name) }
        };
        let mapped = pieces.iter().map(map).collect::<Result<Vec<HostMapping>>>()?;
        let addresses: Vec<u64> = mapped.iter().map(HostMapping::pointer).collect();
        let scratch = scratch.as_ref().and_then(|scratch| scratch.pointers().next()).unwrap_or(0);
        // SAFETY: the arrays are those that the plan is for; all is done when it returns.
        unsafe { plan.launch(std::ptr::null_mut(), &addresses, values, scratch) }
    }

    /// That arrays of the host are where kernels can use them, and what is written apart from all else: the emulator sees
    /// addresses of its own.
    fn check_pieces(&self, pieces: &[Piece]) -> Result<()> {
        let refused =
            |message: String| Err(Error::Argument { kernel: self.signature.kernel.clone(), message });
        for piece in pieces.iter().filter(|piece| piece.bytes > 0) {
            let name = &self.signature.texts[piece.argument];
            if piece.start == 0 {
                return refused(format!("`{name}` has no memory any more"));
            }
            if !piece.start.is_multiple_of(16) {
                return refused(format!(
                    "`{name}` starts at address {:#x}, which is no multiple of 16 bytes, as kernels need it; pass a copy of \
                     that part",
                    piece.start
                ));
            }
            let overlaps = |other: &&Piece| {
                other.argument != piece.argument
                    && piece.start < other.start + other.bytes
                    && other.start < piece.start + piece.bytes
            };
            if self.signature.writes(piece.argument)
                && let Some(other) = pieces.iter().find(overlaps)
            {
                let other = &self.signature.texts[other.argument];
                return refused(format!(
                    "`{name}` is written and is the same memory as `{other}`; pass a copy of one"
                ));
            }
        }
        Ok(())
    }
}
