//! Request bodies: read within limits of bytes, of time and of memory.
//!
//! A body is read before its request takes a seat in flight: one that does not arrive costs its own
//! connection, and no more memory than its user may hold.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::Arriving;
use windlass_access::{MASTERS, User};
use windlass_rules::status::Status;

/// Upstream's limit for a request body.
const BODY_BYTES_LIMIT: usize = 3 << 20;
/// The limit for the body of a method whose options are few: the longest `DeleteOptions` is shorter.
const OPTIONS_BYTES_LIMIT: usize = 64 << 10;
/// Bytes above the limit that are still read, and dropped: a client that is cut off while it writes
/// does not read why.
const DRAINED_BYTES_LIMIT: usize = 16 << 20;
/// A body may take this long however short it is.
const BODY_GRACE: Duration = Duration::from_secs(10);
/// Beyond the grace period, so many bytes of it arrive each second.
const BODY_BYTES_PER_SECOND: u32 = 64 << 10;
/// Each body counts as so many bytes before the first has arrived: its headers, its stream.
const BODY_BASE_BYTES: usize = 4 << 10;
/// Memory of the bodies of one user.
const USER_BYTES_LIMIT: usize = 64 << 20;
/// Memory of all bodies.
const TOTAL_BYTES_LIMIT: usize = 256 << 20;
/// The part of it that only members of `system:masters` may use.
const MASTERS_BYTES_RESERVE: usize = 64 << 20;

/// Reads request bodies and counts their memory, from the first byte until the answer.
#[derive(Debug, Default)]
pub(crate) struct BodyIntake {
    held: Mutex<HeldBytes>,
    refused: AtomicU64,
    late: AtomicU64,
}

#[derive(Debug, Default)]
struct HeldBytes {
    total: usize,
    users: HashMap<String, usize>,
}

/// A request body that has arrived.
#[derive(Debug, Default)]
pub(crate) struct ReadBody<'a> {
    pub(crate) bytes: Bytes,
    /// Counts the bytes until the request is answered.
    _memory: Option<BodyMemory<'a>>,
}

/// The memory of one body; given back when dropped.
#[derive(Debug)]
struct BodyMemory<'a> {
    intake: &'a BodyIntake,
    user: String,
    is_master: bool,
    bytes: usize,
}

/// Bodies of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyStats {
    /// Bytes that are held.
    pub(crate) held: usize,
    /// Requests refused because their user, or all, held too many bytes.
    pub(crate) refused: u64,
    /// Requests refused because their body did not arrive in time.
    pub(crate) late: u64,
}

impl BodyIntake {
    /// Reads a request body. That of a GET or HEAD is not looked at, as with upstream.
    pub(crate) async fn read(
        &self,
        method: &Method,
        body: Arriving,
        user: &User,
    ) -> Result<ReadBody<'_>, Status> {
        if matches!(*method, Method::GET | Method::HEAD) || body.is_end_stream() {
            return Ok(ReadBody::default());
        }
        let limit = match *method {
            Method::POST | Method::PUT | Method::PATCH => BODY_BYTES_LIMIT,
            _ => OPTIONS_BYTES_LIMIT,
        };
        let mut memory = BodyMemory {
            intake: self,
            user: user.name.clone(),
            is_master: user.is_in(MASTERS),
            bytes: 0,
        };
        memory.grow(BODY_BASE_BYTES)?;
        let mut arrival = Arrival {
            body,
            started: Instant::now(),
            received: 0,
        };
        let bytes = arrival.read(limit, &mut memory).await?;
        Ok(ReadBody {
            bytes,
            _memory: Some(memory),
        })
    }

    fn note_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// The present figures.
    pub(crate) fn stats(&self) -> BodyStats {
        BodyStats {
            held: self.held.lock().total,
            refused: self.refused.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
        }
    }
}

impl BodyMemory<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), Status> {
        let limit = match self.is_master {
            true => TOTAL_BYTES_LIMIT,
            false => TOTAL_BYTES_LIMIT - MASTERS_BYTES_RESERVE,
        };
        let mut held = self.intake.held.lock();
        let of_user = held.users.get(&self.user).copied().unwrap_or(0);
        if of_user + bytes > USER_BYTES_LIMIT || held.total + bytes > limit {
            drop(held);
            self.intake.refused.fetch_add(1, Ordering::Relaxed);
            return Err(crate::overload::overloaded());
        }
        match held.users.get_mut(&self.user) {
            Some(of_user) => *of_user += bytes,
            None => drop(held.users.insert(self.user.clone(), bytes)),
        }
        held.total += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyMemory<'_> {
    fn drop(&mut self) {
        let mut held = self.intake.held.lock();
        held.total -= self.bytes;
        if let Some(of_user) = held.users.get_mut(&self.user) {
            *of_user -= self.bytes;
            if *of_user == 0 {
                held.users.remove(&self.user);
            }
        }
    }
}

/// A body on its way.
struct Arrival {
    body: Arriving,
    started: Instant,
    received: usize,
}

impl Arrival {
    async fn read(&mut self, limit: usize, memory: &mut BodyMemory<'_>) -> Result<Bytes, Status> {
        if self.body.size_hint().lower() > limit as u64 {
            self.drain().await;
            return Err(too_large(limit));
        }
        let mut first = Bytes::new();
        let mut all = Vec::new();
        loop {
            let next = self.next().await;
            let Some(data) = next.inspect_err(|_| memory.intake.note_late())? else {
                break;
            };
            if first.len() + all.len() + data.len() > limit {
                self.drain().await;
                return Err(too_large(limit));
            }
            memory.grow(data.len())?;
            // Most bodies come in one piece, which is then not copied.
            if first.is_empty() && all.is_empty() {
                first = data;
                continue;
            }
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
        Ok(if all.is_empty() { first } else { all.into() })
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            let Ok(frame) = timeout_at(self.deadline(), self.body.frame()).await else {
                return Err(too_slow(self.received));
            };
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| {
                Status::bad_request(format!("unable to read the request body: {error}"))
            })?;
            if let Ok(data) = frame.into_data() {
                self.received += data.len();
                return Ok(Some(data));
            }
        }
    }

    /// The time by which the next byte must have arrived.
    fn deadline(&self) -> Instant {
        let received = u32::try_from(self.received).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * (received / BODY_BYTES_PER_SECOND);
        self.started + BODY_GRACE + earned
    }

    /// Drops the rest of a body that is too large.
    async fn drain(&mut self) {
        if self.body.size_hint().lower() > DRAINED_BYTES_LIMIT as u64 {
            return;
        }
        let mut left = DRAINED_BYTES_LIMIT;
        while let Ok(Some(data)) = self.next().await {
            if data.len() > left {
                return;
            }
            left -= data.len();
        }
    }
}

fn too_large(limit: usize) -> Status {
    Status::too_large(format!("Request entity too large: limit is {limit}"))
}

fn too_slow(received: usize) -> Status {
    Status::timeout(&format!(
        "the request body did not arrive in time ({received} bytes so far); after {} s, at least \
         {BODY_BYTES_PER_SECOND} bytes a second are expected",
        BODY_GRACE.as_secs()
    ))
}
