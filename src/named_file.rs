//! Files that a user names: read to their end only where they have one.

use std::path::Path;

/// Bytes of a regular file of at most so many; the error says why without naming the file. Anything else, such as a device or a
/// pipe, may have no end, and is not even opened.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if metadata.len() > most {
        return Err(format!("it has {} bytes, at most {most} are taken", metadata.len()));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// The same for a text.
pub fn read_text(path: &Path, most: u64) -> Result<String, String> {
    String::from_utf8(read(path, most)?).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert_eq!(read(&path, 3).unwrap_err(), "it has 4 bytes, at most 3 are taken");
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert_eq!(read(other, 4).unwrap_err(), "it is no regular file");
        }
        assert!(
            read(&folder.path().join("none"), 4)
                .unwrap_err()
                .contains("No such file")
        );
        std::fs::write(&path, b"\xE9").unwrap();
        assert_eq!(read_text(&path, 4).unwrap_err(), "it is not UTF-8");
    }
}
