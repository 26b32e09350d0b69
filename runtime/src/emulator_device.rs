//! temporary
use crate::backend::*;
use crate::error::{Error, Result};
use krn_compiler::CompiledModule;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
pub struct EmulatorDevice;
impl EmulatorDevice { pub fn new(_f: Arc<AtomicBool>) -> Self { Self } }
impl Backend for EmulatorDevice {
    fn description(&self) -> String { "none".into() }
    fn capability(&self) -> Option<u32> { None }
    fn is_emulator(&self) -> bool { true }
    fn allocate(&self, _: u64, _: &str) -> Result<DevicePtr> { Err(Error::NoDevice("none".into())) }
    fn free(&self, _: DevicePtr) {}
    fn copy_in(&self, _: DevicePtr, _: &[u8]) -> Result<()> { Ok(()) }
    fn copy_out(&self, _: DevicePtr, _: &mut [u8]) -> Result<()> { Ok(()) }
    fn fill(&self, _: DevicePtr, _: u8, _: u64) -> Result<()> { Ok(()) }
    fn load(&self, _: &CompiledModule) -> Result<Box<dyn LoadedModule>> { Err(Error::NoDevice("none".into())) }
    fn launch(&self, _: &dyn LoadedModule, _: &LaunchRequest<'_>) -> Result<()> { Ok(()) }
    fn synchronize(&self) -> Result<()> { Ok(()) }
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> { work()?; Ok(Duration::ZERO) }
    fn lane_instructions(&self) -> Option<u64> { None }
}
