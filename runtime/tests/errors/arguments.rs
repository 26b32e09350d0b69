//! Arguments of other types, ranks and numbers than the kernel's.

use krn_runtime::{Array, Device, Result};

krn_runtime::kernels!("../typed.krn");

fn main() -> Result<()> {
    let device = Device::open()?;
    let kernels = typed::Kernels::load(&device)?;
    let x = Array::<f32, 1>::zeros(&device, [4])?;
    let mut y = Array::<f32, 1>::zeros(&device, [4])?;
    let wide = Array::<f64, 1>::zeros(&device, [4])?;
    let table = Array::<f32, 2>::zeros(&device, [4, 4])?;
    let _ = kernels.all_kinds(1.0, &wide, &mut y)?;
    let _ = kernels.all_kinds(1.0, &table, &mut y)?;
    let _ = kernels.all_kinds(1.0, &x, &y)?;
    let _ = kernels.all_kinds(1.0, &x.view(0..4)?, &mut y.view(0..4)?)?;
    let _ = kernels.all_kinds(1.0, x, &mut y)?;
    let _ = kernels.all_kinds(1, &table, &mut y)?;
    let _ = kernels.all_kinds(1.0, &x)?;
    let _ = kernels.no_such(&x)?;
    Ok(())
}
