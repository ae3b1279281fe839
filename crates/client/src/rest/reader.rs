//! Reading a body within a time.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use crate::transport::{Body, BoxError};

/// Reads a body in chunks and gives up when the server takes too long.
#[derive(Debug)]
pub(crate) struct Reader {
    body: Body,
    limit: Limit,
}

/// How long the server may take.
#[derive(Debug)]
enum Limit {
    None,
    /// So much waiting in all. What the caller does between chunks does not count.
    Waiting {
        all: Duration,
        left: Duration,
    },
    /// Until this moment, whatever happens.
    Until {
        all: Duration,
        moment: Instant,
    },
}

/// Why a body ended too early.
#[derive(Debug)]
pub(crate) enum ReadError {
    Timeout(Duration),
    Connection(BoxError),
}

impl Reader {
    pub(crate) fn endless(body: Body) -> Self {
        Self {
            body,
            limit: Limit::None,
        }
    }

    pub(crate) fn within(body: Body, all: Duration) -> Self {
        Self {
            body,
            limit: Limit::Waiting { all, left: all },
        }
    }

    pub(crate) fn until(body: Body, all: Duration) -> Self {
        let moment = Instant::now() + all;
        Self {
            body,
            limit: Limit::Until { all, moment },
        }
    }

    /// The next chunk, before `deadline` if there is one. The duration is what to say when the
    /// deadline is missed.
    pub(crate) async fn chunk(
        &mut self,
        deadline: Option<(Instant, Duration)>,
    ) -> Option<Result<Bytes, ReadError>> {
        let start = Instant::now();
        let own = match self.limit {
            Limit::None => None,
            Limit::Waiting { all, left } => Some((start + left, all)),
            Limit::Until { all, moment } => Some((moment, all)),
        };
        let earliest = own.into_iter().chain(deadline).min();
        let chunk = match earliest {
            None => self.body.chunk().await,
            Some((moment, all)) => match timeout_at(moment, self.body.chunk()).await {
                Ok(chunk) => chunk,
                Err(_) => return Some(Err(ReadError::Timeout(all))),
            },
        };
        if let Limit::Waiting { left, .. } = &mut self.limit {
            *left = left.saturating_sub(start.elapsed());
        }
        chunk.map(|chunk| chunk.map_err(ReadError::Connection))
    }

    /// All bytes, up to a limit.
    pub(crate) async fn collect(&mut self, bytes_limit: usize) -> Result<Collected, ReadError> {
        let mut first = Bytes::new();
        let mut rest = Vec::new();
        while let Some(chunk) = self.chunk(None).await {
            let chunk = chunk?;
            if first.len() + rest.len() + chunk.len() > bytes_limit {
                return Ok(Collected::TooLong);
            }
            // A body in one chunk is not copied.
            if first.is_empty() && rest.is_empty() {
                first = chunk;
                continue;
            }
            if rest.is_empty() {
                rest = std::mem::take(&mut first).into();
            }
            rest.extend_from_slice(&chunk);
        }
        Ok(Collected::Whole(if rest.is_empty() {
            first
        } else {
            rest.into()
        }))
    }
}

/// What came of reading a whole body.
#[derive(Debug)]
pub(crate) enum Collected {
    Whole(Bytes),
    TooLong,
}
