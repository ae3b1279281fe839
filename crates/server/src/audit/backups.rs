//! Files of the audit log that were put aside: `NAME-TIME.EXT`, as upstream names them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_core::MicroTime;

use super::AuditOptions;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Files of the directory that are looked at when old ones are removed.
const FILES_LIMIT: usize = 100_000;

/// The path of a file that is put aside now.
pub(super) fn name(path: &Path, now: MicroTime) -> PathBuf {
    let (stem, extension) = parts(path);
    path.with_file_name(format!("{stem}-{}{extension}", stamp(now)))
}

/// Removes the files that are too many or too old.
pub(super) fn clear_away(options: &AuditOptions, now: MicroTime) {
    let mut backups = list(&options.path);
    // The newest first: their names are their times.
    backups.sort_unstable_by(|one, other| other.cmp(one));
    let kept = match options.max_backups {
        0 => backups.len(),
        limit => limit.min(backups.len()),
    };
    let oldest = (options.max_age_days > 0).then(|| {
        let days = u32::try_from(options.max_age_days).unwrap_or(u32::MAX);
        name(&options.path, now - DAY.saturating_mul(days))
    });
    for (index, backup) in backups.iter().enumerate() {
        let is_old = oldest.as_ref().is_some_and(|oldest| backup < oldest);
        if (index >= kept || is_old)
            && let Err(error) = std::fs::remove_file(backup)
        {
            let path = backup.display();
            tracing::warn!(%error, %path, "an old audit log cannot be removed");
        }
    }
}

/// The files that were put aside.
fn list(path: &Path) -> Vec<PathBuf> {
    let (stem, extension) = parts(path);
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let is_backup = |name: &str| {
        let stamp = name.strip_prefix(&*stem);
        let stamp = stamp.and_then(|rest| rest.strip_prefix('-'));
        let stamp = stamp.and_then(|rest| rest.strip_suffix(&*extension));
        stamp.is_some_and(is_stamp)
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .take(FILES_LIMIT)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(is_backup))
        .map(|entry| path.with_file_name(entry.file_name()))
        .collect()
}

/// A file name before and after the place of the time.
fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        let part = part.unwrap_or_default();
        part.to_string_lossy().into_owned()
    };
    let extension = match path.extension() {
        Some(extension) => format!(".{}", extension.to_string_lossy()),
        None => String::new(),
    };
    (text(path.file_stem()), extension)
}

/// A time as part of a file name, such as `2026-01-01T00-00-00.000`.
fn stamp(now: MicroTime) -> String {
    let text = now.to_string().replace(':', "-");
    // Microseconds and the `Z` are cut down to milliseconds.
    let end = text.len().saturating_sub(4);
    text.get(..end).unwrap_or(&text).to_owned()
}

fn is_stamp(text: &str) -> bool {
    const PATTERN: &[u8] = b"0000-00-00T00-00-00.000";
    text.len() == PATTERN.len()
        && text
            .bytes()
            .zip(PATTERN)
            .all(|(byte, pattern)| match pattern {
                b'0' => byte.is_ascii_digit(),
                _ => byte == *pattern,
            })
}

#[cfg(test)]
mod tests {
    use windlass_core::Env;

    use super::*;

    fn at(days: u32) -> MicroTime {
        Env::seeded(1).now_micro() + DAY * days
    }

    #[test]
    fn names_are_those_of_upstream() {
        let path = name(Path::new("/var/log/audit.log"), at(0));
        assert_eq!(
            path,
            Path::new("/var/log/audit-2026-01-01T00-00-00.000.log")
        );
        assert!(is_stamp("2026-01-01T00-00-00.000") && !is_stamp("2026-01-01"));
    }

    #[test]
    fn files_that_are_too_many_or_too_old_go_and_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        for day in 0..6 {
            std::fs::write(name(&path, at(day)), "").unwrap();
        }
        let other = directory.path().join("audit-of-somebody.log");
        std::fs::write(&other, "").unwrap();
        let mut options = AuditOptions::new(&path);
        (options.max_backups, options.max_age_days) = (4, 0);
        clear_away(&options, at(6));
        assert_eq!(list(&path).len(), 4);
        (options.max_backups, options.max_age_days) = (0, 2);
        clear_away(&options, at(6));
        let mut left = list(&path);
        left.sort();
        assert_eq!(left, [name(&path, at(4)), name(&path, at(5))]);
        assert!(other.exists());
    }
}
