//! The log: two files that take turns, each a run of frames.
//!
//! A frame is `checksum, length, generation, content, padding`. Files are written over and over:
//! a frame belongs to the run if it has the generation of the first one. One file takes frames
//! while the writes of the other move to the tables.
//!
//! Half of a generation is the mark of the store, a number that nobody outside knows. Objects hold
//! what users like, so without it something in one could pass for a frame when the rest of a file
//! is searched after a crash.

use std::io;
use std::sync::Arc;

use super::row::take;
use crate::DiskFile;

/// The names of the two files.
pub(super) const FILES: [&str; 2] = ["store.log.0", "store.log.1"];

/// Checksum, length, generation.
const HEAD: usize = 4 + 4 + 8;
/// Frames begin at multiples of this, so that one can be found behind a damaged one.
const ALIGN: usize = 8;
/// Files grow by this much, written with zeros: a sync of blocks that exist is much cheaper than
/// one that has to note new blocks as well.
const STEP: u64 = 256 << 10;

/// Bytes behind the last frame that are left for deletions when the disk is full.
const RESERVE_BYTES: u64 = 64 << 10;

/// What a frame does with the reserve of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserve {
    /// It is there behind the frame, too.
    Keep,
    /// The frame may take it: it only deletes.
    Use,
}

/// A frame that is being put together: content is appended to it.
#[derive(Debug)]
pub(super) struct Frame(Vec<u8>);

impl Frame {
    pub(super) fn new() -> Self {
        Self(vec![0; HEAD])
    }

    /// Where to append the content.
    pub(super) fn content_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// What was appended. Padding may follow once the frame is sealed.
    pub(super) fn content(&self) -> &[u8] {
        &self.0[HEAD..]
    }

    fn seal(&mut self, generation: u64) {
        let len = u32::try_from(self.0.len() - HEAD).expect("invariant: commits are bounded");
        self.0.resize(self.0.len().next_multiple_of(ALIGN), 0);
        self.0[4..8].copy_from_slice(&len.to_le_bytes());
        self.0[8..HEAD].copy_from_slice(&generation.to_le_bytes());
        let checksum = crc32fast::hash(&self.0[4..]);
        self.0[..4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The frame that `bytes` begin with.
    fn read(mark: u32, bytes: &[u8]) -> Option<(u64, Self)> {
        let mut rest = bytes;
        let checksum = u32::from_le_bytes(take(&mut rest)?);
        let len = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let generation = u64::from_le_bytes(take(&mut rest)?);
        if generation == 0 || generation >> 32 != u64::from(mark) {
            return None;
        }
        let end = HEAD.checked_add(len)?.checked_next_multiple_of(ALIGN)?;
        let frame = bytes.get(..end)?;
        (checksum == crc32fast::hash(&frame[4..])).then(|| (generation, Self(frame.to_vec())))
    }
}

/// What a file holds when it is opened.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Zero if there is no frame.
    pub(super) generation: u64,
    pub(super) frames: Vec<Frame>,
    /// Frames that are whole but not in the run: left from before, or cut off by damage.
    pub(super) beyond: Vec<Frame>,
    /// The newest generation of all frames.
    newest: u64,
}

impl Run {
    fn read(mark: u32, bytes: &[u8]) -> Self {
        let mut run = Self::default();
        let mut at = 0;
        while let Some((generation, frame)) = Frame::read(mark, &bytes[at..]) {
            if run.generation != 0 && generation != run.generation {
                break;
            }
            run.generation = generation;
            run.newest = generation;
            at += frame.0.len();
            run.frames.push(frame);
        }
        while at < bytes.len() {
            match Frame::read(mark, &bytes[at..]) {
                Some((generation, frame)) => {
                    run.newest = run.newest.max(generation);
                    at += frame.0.len();
                    run.beyond.push(frame);
                }
                None => at += ALIGN,
            }
        }
        run
    }
}

/// The mark of the frame that a file begins with, whichever it is.
pub(super) fn mark_of(bytes: &[u8]) -> Option<u32> {
    let generation = u64::from_le_bytes(bytes.get(8..HEAD)?.try_into().ok()?);
    let mark = u32::try_from(generation >> 32).ok()?;
    Frame::read(mark, bytes).map(|_| mark)
}

/// All sound frames of a file, whichever run they belong to.
pub(super) fn frames(mark: u32, bytes: &[u8]) -> impl Iterator<Item = Frame> {
    let run = Run::read(mark, bytes);
    run.frames.into_iter().chain(run.beyond)
}

/// The two files.
#[derive(Debug)]
pub(super) struct Log {
    files: [Arc<dyn DiskFile>; 2],
    /// How long each file is.
    lens: [u64; 2],
    /// The file that takes frames.
    active: usize,
    /// Where its next frame goes.
    at: u64,
    generation: u64,
}

impl Log {
    /// The log in two files. It must be read before it is appended to.
    pub(super) fn new(files: [Arc<dyn DiskFile>; 2]) -> io::Result<Self> {
        Ok(Self {
            lens: [files[0].len()?, files[1].len()?],
            files,
            active: 0,
            at: 0,
            generation: 0,
        })
    }

    /// Reads both files of the store with this mark, the older run first.
    pub(super) fn read(&mut self, mark: u32) -> io::Result<Vec<Run>> {
        let all = self.read_all()?;
        let mut runs: Vec<Run> = all.iter().map(|bytes| Run::read(mark, bytes)).collect();
        runs.sort_by_key(|run| run.generation);
        let none = u64::from(mark) << 32;
        self.generation = 1 + runs.iter().fold(none, |newest, run| newest.max(run.newest));
        Ok(runs)
    }

    /// The bytes of both files.
    pub(super) fn read_all(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        for (file, len) in self.files.iter().zip(self.lens) {
            let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
            file.read(0, &mut bytes)?;
            all.push(bytes);
        }
        Ok(all)
    }

    /// The file that takes frames.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// Bytes of frames in the active file.
    pub(super) fn filled(&self) -> u64 {
        self.at
    }

    /// Bytes of both files.
    pub(super) fn bytes(&self) -> u64 {
        self.lens.iter().sum()
    }

    /// Makes sure that a sealed frame fits into the active file, with a reserve behind it unless
    /// the frame may use it. Nothing of the frame is written.
    pub(super) fn make_room(&mut self, frame: &mut Frame, reserve: Reserve) -> io::Result<()> {
        frame.seal(self.generation);
        let end = self.at + frame.0.len() as u64;
        let needed = match reserve {
            Reserve::Keep => end + RESERVE_BYTES,
            Reserve::Use => end,
        };
        self.grow(needed)
    }

    /// Looks whether there is space for the reserve.
    pub(super) fn regain_reserve(&mut self) -> io::Result<()> {
        self.grow(self.at + RESERVE_BYTES)
    }

    fn grow(&mut self, needed: u64) -> io::Result<()> {
        let (file, len) = (&self.files[self.active], &mut self.lens[self.active]);
        let mut grown = *len;
        while grown < needed {
            let step = usize::try_from(STEP).map_err(io::Error::other)?;
            if let Err(error) = file.write(grown, &vec![0; step]) {
                // What there is of it is of no use, and others may need it. If it stays, it is
                // written over later.
                let _ = file.set_len(*len);
                return Err(error);
            }
            grown += STEP;
        }
        *len = grown;
        Ok(())
    }

    /// Appends a frame that there is room for. It is durable only if `sync` is set.
    pub(super) fn append(&mut self, frame: &Frame, sync: bool) -> io::Result<()> {
        let file = &self.files[self.active];
        file.write(self.at, &frame.0)?;
        self.at += frame.0.len() as u64;
        if sync { file.sync() } else { Ok(()) }
    }

    /// Goes on in the other file, whose frames nobody needs any more.
    pub(super) fn switch(&mut self) {
        self.active = 1 - self.active;
        self.at = 0;
        self.generation += 1;
    }

    /// Empties both files, whose frames nobody needs any more.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        for (file, len) in self.files.iter().zip(&mut self.lens) {
            if *len > 0 {
                file.set_len(0)?;
                *len = 0;
            }
        }
        (self.active, self.at) = (0, 0);
        self.generation += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: u32 = 0x5eed_1e55;

    fn frame(text: &str) -> Frame {
        let mut frame = Frame::new();
        frame.content_mut().extend(text.as_bytes());
        frame
    }

    fn texts<'a>(frames: &'a [Frame]) -> Vec<&'a str> {
        let text = |frame: &'a Frame| {
            str::from_utf8(frame.content())
                .unwrap()
                .trim_end_matches('\0')
        };
        frames.iter().map(text).collect()
    }

    fn run(generation: u64, all: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in all {
            let mut frame = frame(text);
            frame.seal((u64::from(MARK) << 32) + generation);
            bytes.extend(frame.0);
        }
        bytes
    }

    #[test]
    fn a_run_ends_where_the_generation_changes() {
        let mut bytes = run(3, &["one", "two", "three"]);
        let newer = run(4, &["four"]);
        bytes[..newer.len()].copy_from_slice(&newer);
        let read = Run::read(MARK, &bytes);
        assert_eq!(read.generation, (u64::from(MARK) << 32) + 4);
        assert_eq!(texts(&read.frames), ["four"]);
        assert_eq!(texts(&read.beyond), ["two", "three"]);
    }

    #[test]
    fn a_flipped_bit_cuts_the_run_and_what_follows_is_found() {
        let bytes = run(3, &["one", "two", "three"]);
        let first = run(3, &["one"]).len();
        for bit in 0..first * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let read = Run::read(MARK, &damaged);
            assert!(!texts(&read.frames).contains(&"one"), "bit {bit}");
            let found = [texts(&read.frames), texts(&read.beyond)].concat();
            assert_eq!(found, ["two", "three"], "bit {bit}");
        }
    }

    #[test]
    fn a_frame_inside_of_an_object_is_not_found_without_the_mark() {
        let mut forged = frame("never written");
        forged.seal(5);
        let mut torn = frame("");
        torn.content_mut().extend(&forged.0);
        torn.content_mut().extend(b"cut off");
        torn.seal((u64::from(MARK) << 32) + 5);
        let end = torn.0.len() - 1;
        torn.0[end] ^= 1;
        let read = Run::read(MARK, &torn.0);
        assert_eq!((read.frames.len(), read.beyond.len()), (0, 0));
        // A store from before there were marks would take it for a commit.
        assert_eq!(Run::read(0, &torn.0).beyond.len(), 1);
    }

    #[test]
    fn zeros_are_no_frame() {
        let read = Run::read(MARK, &[0; 100]);
        assert_eq!(
            (read.generation, read.frames.len(), read.beyond.len()),
            (0, 0, 0)
        );
        assert_eq!(Run::read(MARK, &[]).frames.len(), 0);
    }
}
