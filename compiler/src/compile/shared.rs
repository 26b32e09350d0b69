//! What lies where in the shared memory of a kernel's entries, to look at.

use crate::ir::kernel::Kernel;
use crate::ir::placement::SharedTile;
use crate::manifest::Expr;
use crate::ptx::select::shared_plan;

/// An array in the shared memory of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedArray {
    /// The entry whose blocks have it.
    pub entry: String,
    pub name: String,
    /// Where it starts, and how long it is, in bytes.
    pub offset: u64,
    pub bytes: u64,
    /// Of one element, in bytes.
    pub element_bytes: u64,
    /// Where it is a tile of an array in global memory.
    pub tile: Option<SharedTile>,
}

/// The shared arrays of a kernel in its last form, entry by entry, in the order in which they lie. Those whose place the
/// launch decides are left out.
pub fn shared_arrays(kernel: &Kernel) -> Vec<SharedArray> {
    let mut arrays = Vec::new();
    for launch in kernel.launches.values() {
        for (buffer, offset) in shared_plan(kernel, launch.body).offsets {
            let data = &kernel.buffers[buffer];
            let extents = data.extents.iter().map(|extent| match extent {
                Expr::Int(extent) => u64::try_from(*extent).ok(),
                _ => None,
            });
            let elements = extents.product::<Option<u64>>();
            let (Expr::Int(offset), Some(elements)) = (offset, elements) else { continue };
            arrays.push(SharedArray {
                entry: launch.name.clone(),
                name: data.name.clone(),
                offset: offset.max(0) as u64,
                bytes: elements * data.element.size,
                element_bytes: data.element.size,
                tile: kernel.schedule.tiles.iter().find(|tile| tile.buffer == buffer).copied(),
            });
        }
    }
    arrays
}

#[cfg(test)]
mod tests {
    use crate::ir::kernel::{Factor, Level};
    use crate::source::SourceFile;
    use crate::{CompileOptions, compile, shared_arrays};

    fn kernel(text: &str) -> crate::ir::kernel::Kernel {
        let source = SourceFile::new("k.krn", text);
        let options = CompileOptions { ir: true, ..CompileOptions::for_target("sm_90") };
        let compiled = compile(&source, &options).expect("it compiles");
        compiled.ir().expect("it was asked for").kernels.remove(0)
    }

    #[test]
    fn tiles_of_a_transposition_lie_padded() {
        let kernel = kernel(
            "kernel t(a: f32[m, n]) -> b: f32[n, m] { b[j, i] = a[i, j] }\n\
             schedule t { stage a pad 1 }\n",
        );
        let arrays = shared_arrays(&kernel);
        assert!(!arrays.is_empty());
        for array in &arrays {
            let tile = array.tile.expect("a tile");
            assert_eq!((array.name.as_str(), array.element_bytes, tile.pitch), ("a_tile", 4, tile.row + 1));
            assert_eq!(array.bytes % (4 * tile.pitch), 0);
        }
    }

    #[test]
    fn axes_say_how_they_are_spread() {
        let kernel = kernel(
            "kernel p(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }\n",
        );
        for launch in kernel.launches.values() {
            let of = |axis: &str| -> Vec<Factor> {
                let mut all = kernel.schedule.spreads.iter();
                let found = all.find(|spread| spread.launch == launch.name && spread.axis == axis);
                found.map(|spread| spread.factors.clone()).unwrap_or_default()
            };
            let threads: u64 = [of("i"), of("j")]
                .concat()
                .iter()
                .filter(|factor| matches!(factor.level, Level::Warp | Level::Lane))
                .filter_map(|factor| factor.size)
                .product();
            assert_eq!(Some(threads), launch.threads.map(u64::from), "{}", launch.name);
        }
    }
}
