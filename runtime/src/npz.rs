//! NumPy `.npz` files: archives (zip) of named `.npy` files, stored or deflated.

use crate::npy::{self, NpyError};
use krn_compiler::data::{ElementType, HostArray};
use std::io::{Cursor, Read, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Names in the archive end with it; `numpy.load` leaves it out.
const SUFFIX: &str = ".npy";

fn damaged(error: &ZipError) -> NpyError {
    NpyError::new(format!("not a .npz file: {error}"))
}

fn open(bytes: &[u8]) -> Result<ZipArchive<Cursor<&[u8]>>, NpyError> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))
}

/// The names of a file's arrays, in its order.
///
/// # Errors
/// Anything but an archive.
pub fn names(bytes: &[u8]) -> Result<Vec<String>, NpyError> {
    let archive = open(bytes)?;
    let names: Result<Vec<_>, ZipError> = archive.file_names().collect();
    let names = names.map_err(|error| damaged(&error))?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(SUFFIX)).map(str::to_string).collect())
}

/// Reads the array of that name from a file's bytes, as one of the element type that is wanted.
///
/// # Errors
/// Anything but an archive with an array of that name and element type.
pub fn read(bytes: &[u8], name: &str, wanted: &ElementType) -> Result<HostArray, NpyError> {
    let mut archive = open(bytes)?;
    let mut member = match archive.by_name(&format!("{name}{SUFFIX}")) {
        Ok(member) => member,
        Err(ZipError::FileNotFound) => {
            let known: Vec<String> = names(bytes)?.iter().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return Err(NpyError::new(format!("the file has no array `{name}`; it has {known}")));
        }
        Err(error) => return Err(damaged(&error)),
    };
    let size = member.size();
    let mut array = Vec::new();
    // The archive says how large it is; one that lies is read no further.
    let room = usize::try_from(size).ok().and_then(|size| array.try_reserve_exact(size).ok());
    if room.is_none() {
        return Err(NpyError::new(format!("`{name}` would have {size} bytes, which do not fit in memory")));
    }
    // To the end, where its checksum is looked at.
    let found = member.by_ref().take(size.saturating_add(1)).read_to_end(&mut array);
    match found {
        Ok(found) if found as u64 == size => {}
        Ok(_) => return Err(NpyError::new(format!("`{name}` is damaged: it has more than {size} bytes"))),
        Err(error) => return Err(NpyError::new(format!("`{name}` is damaged: {error}"))),
    }
    npy::read(&array, wanted).map_err(|error| NpyError::new(format!("`{name}`: {error}")))
}

/// The bytes of a `.npz` file with these arrays, in this order, not compressed. The same arrays give the same bytes.
///
/// # Errors
/// A name that is there twice, or that is no name of a file.
pub fn write(arrays: &[(&str, &HostArray)]) -> Result<Vec<u8>, NpyError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, array) in arrays {
        let bytes = npy::write(array);
        // 64-bit sizes where 32 bits may be too few. The time is always 1980-01-01.
        let large = bytes.len() as u64 >= u64::from(u32::MAX);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(large);
        let started = archive.start_file(format!("{name}{SUFFIX}"), options);
        let written = started.and_then(|()| Ok(archive.write_all(&bytes)?));
        written
            .map_err(|error| NpyError::new(format!("`{name}` cannot be put into a .npz file: {error}")))?;
    }
    let finished = archive.finish().map_err(|error| damaged(&error))?;
    Ok(finished.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use krn_compiler::data::Scalar;

    fn counted(scalar: Scalar, shape: &[u64]) -> HostArray {
        let mut array = HostArray::zeros(ElementType::scalar(scalar), shape.to_vec()).expect("small");
        array.bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
        array
    }

    #[test]
    fn several_arrays_come_back_by_name() {
        let arrays = [counted(Scalar::F32, &[3, 5]), counted(Scalar::I64, &[]), counted(Scalar::U8, &[0])];
        let named: Vec<(&str, &HostArray)> = ["a", "b", "c"].into_iter().zip(&arrays).collect();
        let file = write(&named).expect("good names");
        assert_eq!(write(&named), Ok(file.clone()), "the same to the byte");
        assert_eq!(names(&file).expect("whole"), ["a", "b", "c"]);
        for (name, array) in named {
            assert_eq!(read(&file, name, &array.element).as_ref(), Ok(array));
        }
        let text = |result: Result<HostArray, NpyError>| result.expect_err("wrong").to_string();
        let f32 = ElementType::scalar(Scalar::F32);
        assert_eq!(text(read(&file, "d", &f32)), "the file has no array `d`; it has `a`, `b`, `c`");
        assert_eq!(text(read(&file, "b", &f32)), "`b`: the file holds `<i8` where `f32` is wanted");
        assert!(write(&[("a", &arrays[0]), ("a", &arrays[1])]).is_err());
    }

    /// As `numpy.savez_compressed` writes it.
    #[test]
    fn deflated_arrays_are_read() {
        let array = counted(Scalar::F64, &[100]);
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file("x.npy", options).expect("fresh");
        archive.write_all(&npy::write(&array)).expect("in memory");
        let file = archive.finish().expect("in memory").into_inner();
        assert_eq!(read(&file, "x", &array.element), Ok(array));
    }

    #[test]
    fn damaged_files_are_refused() {
        let array = counted(Scalar::U16, &[500]);
        let file = write(&[("x", &array)]).expect("a good name");
        for end in [0, 1, 30, file.len() / 2, file.len() - 1] {
            assert!(read(&file[..end], "x", &array.element).is_err(), "{end}");
        }
        // Every byte in turn: the array comes out as it was, or an error.
        for at in 0..file.len() {
            let mut wrong = file.clone();
            wrong[at] ^= 0x55;
            if let Ok(read) = read(&wrong, "x", &array.element) {
                assert_eq!(read, array, "byte {at}");
            }
        }
    }
}
