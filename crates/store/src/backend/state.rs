//! The state file: which store the other files belong to, and which of them must be there.
//!
//! It is small and written in place, always with the same length, so that a sector holds all of
//! it. Without it a missing table file could not be told from a new store, nor a missing log from
//! an empty one.

use std::sync::Arc;

use crate::{DiskError, DiskFile, OpenError};

/// The name of the file.
pub(super) const STATE_FILE: &str = "store.state";

/// At the head of the file, with the version of its format.
const HEAD: &str = "windlass-store-state 1";
/// More than this is no state file.
const BYTES_LIMIT: u64 = 512;

/// What the state file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The identity of the store.
    pub(super) uid: String,
    /// The mark of the frames in the log.
    pub(super) mark: u32,
    /// The files of the log that hold commits which the tables may not have.
    pub(super) logs: [bool; 2],
}

impl State {
    /// Reads the file; `None` if it was never written.
    pub(super) fn read(file: &dyn DiskFile) -> Result<Option<Self>, OpenError> {
        let len = file.len().map_err(DiskError::from)?;
        if len > BYTES_LIMIT {
            return Err(damaged());
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        file.read(0, &mut bytes).map_err(DiskError::from)?;
        // A crash while the file is made can leave its length without its content.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Self::parse(&bytes).map(Some).ok_or_else(damaged)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let (content, checksum) = text.strip_suffix('\n')?.rsplit_once("\nchecksum ")?;
        if checksum != format!("{:08x}", crc32fast::hash(content.as_bytes())) {
            return None;
        }
        let mut lines = content.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let uid = lines.next()?.strip_prefix("uid ")?.to_owned();
        let mark = u32::from_str_radix(lines.next()?.strip_prefix("mark ")?, 16).ok()?;
        let logs = match lines.next()?.strip_prefix("logs ")? {
            "--" => [false, false],
            "0-" => [true, false],
            "-1" => [false, true],
            "01" => [true, true],
            _ => return None,
        };
        Some(Self { uid, mark, logs })
    }

    fn text(&self) -> String {
        let log = |index: usize, name| if self.logs[index] { name } else { '-' };
        let (first, second) = (log(0, '0'), log(1, '1'));
        let (uid, mark) = (&self.uid, self.mark);
        let content = format!("{HEAD}\nuid {uid}\nmark {mark:08x}\nlogs {first}{second}");
        let checksum = crc32fast::hash(content.as_bytes());
        format!("{content}\nchecksum {checksum:08x}\n")
    }
}

/// The state file of an open store.
#[derive(Debug)]
pub(super) struct StateFile {
    file: Arc<dyn DiskFile>,
    state: State,
}

impl StateFile {
    /// Goes on with the state of a store. Nothing is written yet.
    pub(super) fn new(file: Arc<dyn DiskFile>, state: State) -> Self {
        Self { file, state }
    }

    /// Writes down which files of the log must be there from now on, unless that is known.
    pub(super) fn set_logs(&mut self, logs: [bool; 2]) -> Result<(), DiskError> {
        if self.state.logs == logs {
            return Ok(());
        }
        self.state.logs = logs;
        self.save()
    }

    /// Writes down that a file of the log must be there from now on.
    pub(super) fn uses_log(&mut self, index: usize) -> Result<(), DiskError> {
        let mut logs = self.state.logs;
        logs[index] = true;
        self.set_logs(logs)
    }

    /// Makes the state durable.
    pub(super) fn save(&self) -> Result<(), DiskError> {
        self.file.write(0, self.state.text().as_bytes())?;
        Ok(self.file.sync()?)
    }
}

fn damaged() -> OpenError {
    OpenError::Damaged(format!("{STATE_FILE} is not as it was written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_back_as_written_and_no_flipped_bit_does() {
        for logs in [[false, false], [true, false], [false, true], [true, true]] {
            let state = State {
                uid: "6a0ba2c0-8a8f-4d3c-9d0e-000000000001".to_owned(),
                mark: 0x5eed_1e55,
                logs,
            };
            let text = state.text();
            assert_eq!(State::parse(text.as_bytes()), Some(state));
            for bit in 0..text.len() * 8 {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(State::parse(&bytes), None, "bit {bit}");
            }
        }
    }
}
