//! Files that appear whole or not at all: each is written beside its place and renamed.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes `contents` to `path` by way of a temporary file beside it, so that a reader sees the old file or the new one.
///
/// # Errors
/// What the system says, with the path.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_piecewise(path, |file| file.write_all(contents))
}

/// The same for contents that are too large to be held in memory: `write` writes them, in pieces of a size of its choice.
///
/// # Errors
/// What the system says, with the path.
pub fn write_piecewise(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()));
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(named)?;
    let mut file = tempfile::Builder::new()
        .prefix(".pollpace-")
        .tempfile_in(folder)
        .map_err(named)?;
    write(&mut file).map_err(named)?;
    set_mode(file.path()).map_err(named)?;
    file.persist(path).map_err(|e| named(e.error))?;
    Ok(())
}

/// Temporary files are private; results are for everyone whom the folder lets in.
fn set_mode(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
