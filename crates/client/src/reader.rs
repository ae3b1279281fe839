//! Reading a body within a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::time::{Instant, timeout_at};

use crate::rest_options::RestOptions;
use crate::transport::{Body, BoxError};

/// Reads a body in chunks and gives up when the server takes too long.
#[derive(Debug)]
pub(crate) struct Reader {
    body: Body,
    limit: Limit,
    bytes: usize,
    /// The options whose metrics get the size of the body when it has been read.
    measured: Option<(Arc<RestOptions>, Method)>,
}

/// The time limit of the server.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    /// So much waiting in all. What the caller does between chunks does not count.
    Waiting {
        all: Duration,
        left: Duration,
    },
    /// A deadline for the whole body.
    Until {
        all: Duration,
        moment: Instant,
    },
}

/// The reason why a body ended too early.
#[derive(Debug)]
pub(crate) enum ReadError {
    Timeout(Duration),
    Connection(BoxError),
}

/// The result of reading a whole body.
#[derive(Debug)]
pub(crate) enum Collected {
    Whole(Bytes),
    TooLong,
}

impl Reader {
    pub(crate) fn endless(body: Body) -> Self {
        Self::new(body, Limit::None)
    }

    pub(crate) fn within(body: Body, all: Duration) -> Self {
        Self::new(body, Limit::Waiting { all, left: all })
    }

    pub(crate) fn until(body: Body, all: Duration) -> Self {
        // A moment that no clock reaches is no limit.
        let moment = Instant::now().checked_add(all);
        let limit = moment.map_or(Limit::None, |moment| Limit::Until { all, moment });
        Self::new(body, limit)
    }

    fn new(body: Body, limit: Limit) -> Self {
        Self {
            body,
            limit,
            bytes: 0,
            measured: None,
        }
    }

    /// Adds the size of the body to a client's metrics when it has been read to its end.
    pub(crate) fn measured(mut self, options: Arc<RestOptions>, method: Method) -> Self {
        self.measured = Some((options, method));
        self
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
            Limit::Waiting { all, left } => start.checked_add(left).map(|moment| (moment, all)),
            Limit::Until { all, moment } => Some((moment, all)),
        };
        let chunk = match own.into_iter().chain(deadline).min() {
            None => self.body.chunk().await,
            Some((moment, all)) => match timeout_at(moment, self.body.chunk()).await {
                Ok(chunk) => chunk,
                Err(_) => return Some(Err(ReadError::Timeout(all))),
            },
        };
        if let Limit::Waiting { left, .. } = &mut self.limit {
            *left = left.saturating_sub(start.elapsed());
        }
        match &chunk {
            Some(Ok(chunk)) => self.bytes += chunk.len(),
            Some(Err(_)) => {}
            None => self.measure(),
        }
        chunk.map(|chunk| chunk.map_err(ReadError::Connection))
    }

    fn measure(&mut self) {
        if let Some((options, method)) = self.measured.take() {
            options
                .metrics
                .response_size(&method, &options.host, self.bytes);
        }
    }

    /// All bytes, up to a limit.
    pub(crate) async fn collect(&mut self, bytes_limit: usize) -> Result<Collected, ReadError> {
        let mut first = Bytes::new();
        let mut rest = Vec::new();
        while let Some(chunk) = self.chunk(None).await {
            let chunk = chunk?;
            if self.bytes > bytes_limit {
                return Ok(Collected::TooLong);
            }
            // A body in one chunk is not copied.
            if self.bytes == chunk.len() {
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
