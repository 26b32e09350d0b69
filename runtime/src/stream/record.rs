//! The error record: where a kernel's failing check leaves word for the host, and, behind it, its prints.

use crate::backend::{DevicePtr, StreamNumber};
use crate::device::Device;
use crate::device::prints::Prints;
use crate::device::shared::FailureRecord;
use crate::error::{AssertionFailure, BoundsFailure, Error, InjectionFailure, Result};
use crate::memory::array::DeviceArray;
use crate::memory::storage::Storage;
use crate::memory_kind::Memory;
use crate::stream::prints;
use krn_compiler::data::{ElementType, Scalar};
use krn_compiler::manifest::{
    FAILURE_BYTES, KernelManifest, Layout, Manifest, PRINT_COUNTER, PRINT_RECORDS, RECORD_NUMBERS,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The record of one kernel's launches. The first failure is kept until it is reported.
pub(crate) struct ErrorRecord {
    manifest: Arc<Manifest>,
    kernel: usize,
    array: DeviceArray,
    /// Whether a launch had it since it was looked at.
    used: AtomicBool,
}

impl ErrorRecord {
    /// For launches on a stream of the kernel at that position of the manifest.
    pub fn new(
        device: &Device,
        manifest: &Arc<Manifest>,
        kernel: usize,
        stream: StreamNumber,
    ) -> Result<Self> {
        let element = ElementType::scalar(Scalar::U64);
        let array = DeviceArray::allocate_in(
            device,
            Memory::Device,
            stream,
            "error record",
            element,
            vec![manifest.kernels[kernel].record_bytes() / 8],
            Layout::Aos,
        )?;
        array.fill_on(stream, 0)?;
        Ok(Self { manifest: Arc::clone(manifest), kernel, array, used: AtomicBool::new(false) })
    }

    pub fn is_of(&self, manifest: &Arc<Manifest>, kernel: usize) -> bool {
        Arc::ptr_eq(&self.manifest, manifest) && self.kernel == kernel
    }

    /// A launch has it now.
    pub fn mark_used(&self) {
        self.used.store(true, Ordering::Release);
    }

    pub fn pointer(&self) -> Option<DevicePtr> {
        self.array.pointers().next()
    }

    pub fn storage(&self) -> &Arc<Storage> {
        self.array.storage()
    }
}

impl ErrorRecord {
    /// Tells what was printed since somebody last looked.
    fn tell_prints(&self, stream: StreamNumber, kernel: &KernelManifest) -> Result<()> {
        let size = kernel.print_bytes();
        if size == 0 {
            return Ok(());
        }
        let first = (FAILURE_BYTES + PRINT_COUNTER) as usize;
        let mut bytes = vec![0; first];
        self.array.read_words(stream, &mut bytes)?;
        let count = bytes[FAILURE_BYTES as usize..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if count == 0 {
            return Ok(());
        }
        let kept = count.min(PRINT_RECORDS);
        bytes.resize(first + (kept * size) as usize, 0);
        self.array.read_words(stream, &mut bytes)?;
        self.array.zero_words(stream, FAILURE_BYTES, 8)?;
        self.array.device().shared.print_watchers.tell(&Prints {
            kernel: kernel.name.clone(),
            file: self.manifest.source.clone(),
            lines: prints::lines(kernel, &bytes[first..]),
            left_out: count - kept,
        });
        Ok(())
    }
}

impl FailureRecord for ErrorRecord {
    fn check(&self, stream: StreamNumber) -> Result<()> {
        if !self.used.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let kernel = &self.manifest.kernels[self.kernel];
        self.tell_prints(stream, kernel)?;
        let mut bytes = [0; FAILURE_BYTES as usize];
        self.array.read_words(stream, &mut bytes)?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let (claimed, site) = (word(0) as u32, (word(0) >> 32) as usize);
        if claimed == 0 {
            return Ok(());
        }
        self.array.zero_words(stream, 0, FAILURE_BYTES)?;
        let Some(place) = kernel.sites.get(site) else {
            return Err(Error::Fault(format!("kernel `{}` reported an unknown site", kernel.name)));
        };
        let number =
            |at: usize| -> i128 { if place.unsigned { word(at).into() } else { (word(at) as i64).into() } };
        let (name, file, array) = (kernel.name.clone(), self.manifest.source.clone(), place.array.clone());
        let (line, column) = (place.line, place.column);
        if let Some(fact) = place.injection {
            let fact = kernel.injections.get(fact).map_or(String::new(), |fact| fact.text.clone());
            let (first, second) = (word(16) as i64 - 1, word(8) as i64);
            return Err(Error::NotInjective(Box::new(InjectionFailure {
                kernel: name,
                file,
                line,
                column,
                array,
                value: number(24),
                first,
                second,
                fact,
            })));
        }
        if let Some(assertion) = &place.assertion {
            let values = (0..).map(|at| word(8 + 8 * at) as i64);
            return Err(Error::Assertion(Box::new(AssertionFailure {
                kernel: name,
                file,
                line,
                column,
                condition: assertion.text.clone(),
                indices: assertion.indices.iter().take(RECORD_NUMBERS).cloned().zip(values).collect(),
            })));
        }
        Err(Error::Bounds(Box::new(BoundsFailure {
            kernel: name,
            file,
            line,
            column,
            array,
            axis: place.axis,
            index: number(8),
            extent: word(16) as i64,
        })))
    }
}
