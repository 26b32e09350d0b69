//! Memory that is used before it may be: while a copy is on its way, while the host has a slice, while parts are there.

use krn_runtime::{Array, Device, Pinned, Result, View};

fn a_copy_has_its_buffer(device: &Device, array: &Array<u32, 1>) -> Result<()> {
    let stream = device.stream()?;
    let buffer = Pinned::<u32>::zeros(device, 4)?;
    let pending = array.read_async(buffer, &stream)?;
    println!("{}", buffer[0]);
    pending.wait()?;
    Ok(())
}

fn a_slice_keeps_writers_away(array: &mut Array<u32, 1>) -> Result<()> {
    let slice = array.as_slice()?;
    array.write(&[1; 4])?;
    println!("{}", slice[0]);
    Ok(())
}

fn a_part_has_the_whole(array: &mut Array<u32, 1>) -> Result<()> {
    let (mut low, _high) = array.split_at_mut(4)?;
    array.to_vec()?;
    low.write(&[1; 4])
}

fn a_part_does_not_outlive_it(device: &Device) -> Result<View<'static, u32, 1>> {
    let array = Array::<u32, 1>::zeros(device, [8])?;
    array.view(0..4)
}

fn another_library_has_what_it_writes(device: &Device, array: &mut Array<u32, 1>) -> Result<()> {
    device.stream()?.foreign().writes(&mut *array).queue(|| println!("{:?}", array.to_vec()))
}

fn main() {}
