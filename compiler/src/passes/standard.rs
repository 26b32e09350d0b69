//! The standard pipeline: every pass that the compiler has, in order.

use super::coalesce_axes::CoalesceAxes;
use super::collapse::Collapse;
use super::cse::Cse;
use super::dce::Dce;
use super::delinearize::Delinearize;
use super::double_buffer::DoubleBuffer;
use super::fold::{Fold, Simplify};
use super::forward_stores::ForwardStores;
use super::fuse::{Fuse, Inline};
use super::fuse_launches::FuseLaunches;
use super::fuse_multiply_add::FuseMultiplyAdd;
use super::fuse_reductions::FuseReductions;
use super::guards::Guards;
use super::hoist_checks::HoistChecks;
use super::hoist_reductions::HoistReductions;
use super::join_branches::JoinBranches;
use super::licm::Licm;
use super::lower_tiles::LowerTiles;
use super::map::Map;
use super::matricize::Matricize;
use super::merge_axes::MergeAxes;
use super::moments::Moments;
use super::narrow::Narrow;
use super::normals::Normals;
use super::parallelize::Parallelize;
use super::pass::Pass;
use super::peel::Peel;
use super::per_thread::PerThread;
use super::pin_windows::PinWindows;
use super::privatize::Privatize;
use super::promote_elements::PromoteElements;
use super::rebase_reductions::RebaseReductions;
use super::recognize_reductions::RecognizeReductions;
use super::reduce_atomics::ReduceAtomics;
use super::reuse::Reuse;
use super::rfactor::Rfactor;
use super::scalarize::Scalarize;
use super::scan::Scan;
use super::separate_windows::SeparateWindows;
use super::sink_loads::SinkLoads;
use super::sink_loops::SinkLoops;
use super::soa::Soa;
use super::speculate::Speculate;
use super::split_boundary::SplitBoundary;
use super::split_reductions::SplitReductions;
use super::split_residues::SplitResidues;
use super::stage::Stage;
use super::strength_reduce::StrengthReduce;
use super::strip_mine::StripMine;
use super::threads::ThreadsPass;
use super::tile::{ConcatenateProducts, Layouts, PackOperands, TilePass};
use super::trim_reductions::TrimReductions;
use super::unroll::Unroll;
use super::unroll_and_jam::UnrollAndJam;
use super::unroll_components::UnrollComponents;
use super::unroll_interleaved::UnrollInterleaved;
use super::unroll_parts::UnrollParts;
use super::unroll_short::UnrollShort;
use super::vectorize::Vectorize;
use std::sync::Arc;

/// The rows: the pass, and whether selection needs what it leaves. The reasons are in the passes.
pub fn rows() -> Vec<(Arc<dyn Pass>, bool)> {
    vec![
        // Before `fold`, which takes away what the literals of this one leave.
        (Arc::new(HoistChecks), false),
        // So early that the passes after it see literal extents and simple subscripts.
        (Arc::new(Fold), false),
        // After `fold`, which makes equal subscripts one value; before all that asks what an iteration loads.
        (Arc::new(ForwardStores), false),
        // Before all that looks for loops that are a launch by themselves, and at what a loop stores.
        (Arc::new(JoinBranches), false),
        // Before all that looks for loops in launches.
        (Arc::new(SinkLoops), false),
        // Before `merge_axes` and `fuse_launches`, to which what has a temporary between is two.
        (Arc::new(Inline), false),
        // Before all that asks for reductions.
        (Arc::new(RecognizeReductions), false),
        // Before all that asks what moves with an index: the loads in a reduction move with its own alone.
        (Arc::new(RebaseReductions), false),
        // Before all that counts parallel loops.
        (Arc::new(Parallelize), false),
        // After these two, which look for loops that are reductions, or parallel: for those that keep their order.
        (Arc::new(PromoteElements), false),
        // Before `merge_axes`, which is for what all accesses agree on.
        (Arc::new(Delinearize), false),
        // After `join_branches`, to which the sides of a branch are alike; before `merge_axes`, which merges what is left of an axis.
        (Arc::new(UnrollParts), false),
        // Before `merge_axes`, which merges the axis of components with others, and `fuse_launches`, which makes one launch of
        // what is over one space then.
        (Arc::new(UnrollComponents), false),
        // Before all that counts axes.
        (Arc::new(MergeAxes), false),
        // Before `fuse_launches`, which lets reductions over the same elements share one walk.
        (Arc::new(UnrollAndJam), false),
        // Before `fuse`, which computes what is left of arrays where they are read.
        (Arc::new(FuseLaunches), false),
        // Before `collapse`, which it leaves loops without others beside them, and all that shares reductions.
        (Arc::new(Fuse), false),
        // After `fuse_launches`, which leaves the copies alone, and `fuse`, which leaves arrays out.
        (Arc::new(DoubleBuffer), false),
        (Arc::new(Collapse), false),
        // After `collapse`, which shows all axes of a loop; before all that asks how long reductions are.
        (Arc::new(SplitResidues::default()), false),
        // After `collapse`, which gives reductions over several axes one order; before all that asks how long they are.
        (Arc::new(SeparateWindows::default()), false),
        (Arc::new(PinWindows), false),
        // After `collapse`, which shows all axes of a loop; before all that shares reductions.
        (Arc::new(ReduceAtomics), false),
        // After `collapse`, which gives reductions over several axes one order, and `reduce_atomics`, which shows all
        // reductions; before `hoist_reductions`, which gives each of them a launch of its own.
        (Arc::new(Moments), false),
        // After `merge_axes`, which leaves it the axes that do not lie side by side, and all that makes reductions; before
        // `hoist_reductions`, which looks for products with one axis of steps.
        (Arc::new(Matricize::default()), false),
        (Arc::new(HoistReductions), false),
        // After `hoist_reductions`, which gives reductions launches of their own; before all that asks how long reductions are.
        (Arc::new(TrimReductions), false),
        // After `hoist_reductions`, which gives reductions in the terms of others a loop; before all that asks how long
        // reductions are.
        (Arc::new(Scan), false),
        // After `hoist_reductions`: what is left in a loop is what its iterations differ in.
        (Arc::new(SinkLoads), false),
        // Before all that asks which loads a loop has, and how they lie.
        (Arc::new(Speculate), false),
        // After `collapse`, which shows how many iterations there are side by side; before all that looks for axes
        // to spread.
        (Arc::new(Rfactor), false),
        // After `hoist_reductions`, which gives products launches of their own; before all that looks for one product a term.
        (Arc::new(ConcatenateProducts), false),
        // After `hoist_reductions`, which gives products launches of their own; before `tile`, for whose products it is.
        (Arc::new(PackOperands), false),
        // After `hoist_reductions`, which gives loops launches of their own; before all that asks how long rows are.
        (Arc::new(StripMine), false),
        // After all that takes loops for what their axes are; before `tile`, which takes what lies in other orders, and `map`.
        (Arc::new(UnrollInterleaved), false),
        // Before `map`, which counts sectors under the layouts that are decided here.
        (Arc::new(Soa), false),
        // Takes launches before `map` does, which is for what stays loops.
        (Arc::new(TilePass), false),
        (Arc::new(Layouts), true),
        // Before `map` and what follows it, which is for launches of loops.
        (Arc::new(LowerTiles), true),
        // After `lower_tiles`: for launches of loops; before `map`, which gives axes their threads.
        (Arc::new(CoalesceAxes), false),
        // After all that takes reductions for teams, tiles and launches of their own; before `map`, which is for what is left.
        (Arc::new(FuseReductions), false),
        (Arc::new(Map), true),
        // Looks at axes and their factors, and writes the launches that it makes with explicit threads.
        (Arc::new(Stage::default()), false),
        (Arc::new(SplitReductions), false),
        // Before `per_thread`, which gives the launches that it makes their vectors.
        (Arc::new(Privatize), false),
        (Arc::new(Normals), false),
        // Before `reuse` and `per_thread`, which look at loops without others inside.
        (Arc::new(UnrollShort), false),
        // While indices are those of loops, whose bounds say how large they are; after `unroll_short`, which makes literals
        // of what stands in constant arrays.
        (Arc::new(Narrow), false),
        // Before `per_thread`, which adds to what it leaves.
        (Arc::new(Reuse), false),
        (Arc::new(PerThread), false),
        // From here on the IR is what one thread does.
        (Arc::new(ThreadsPass), true),
        // Before `simplify` and `cse`, which clear up among the copies.
        (Arc::new(Unroll), false),
        // Before `simplify`, which folds what the literals of these two leave.
        (Arc::new(Peel), false),
        (Arc::new(Guards), false),
        // After `guards`, which leaves out what conditions around imply.
        (Arc::new(SplitBoundary), false),
        (Arc::new(Simplify), false),
        (Arc::new(Scalarize), false),
        // Before `licm`, which takes out the sums that it makes invariant, and `cse`, which finds the others equal.
        (Arc::new(StrengthReduce), false),
        (Arc::new(Licm), false),
        // After `licm`, which brings equal instructions of different loops into one region.
        (Arc::new(Cse), false),
        // After `cse`, so that equal subscripts are one value.
        (Arc::new(Vectorize), false),
        // After what looks at products and sums.
        (Arc::new(FuseMultiplyAdd), false),
        // Last: it clears up after all.
        (Arc::new(Dce), false),
    ]
}
