//! How many requests run at a time.
//!
//! As with upstream's priority and fairness, a request that finds no place waits for one before it
//! is refused: a controller that creates five hundred pods at once is no reason to send any of
//! them away.

use std::time::Duration;

use http::Method;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::status::Status;

/// Requests in flight that only read, watches not counted.
const READS_LIMIT: usize = 400;
/// Requests in flight that may write.
const WRITES_LIMIT: usize = 200;
/// Requests of either sort that wait for a place.
const WAITING_LIMIT: usize = 6_400;
/// How long a request waits for a place at most: a quarter of the time it may take.
const WAIT_LIMIT: Duration = Duration::from_secs(15);
/// When a request that was refused may come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The places of all requests.
#[derive(Debug)]
pub(crate) struct Flow {
    reads: Lane,
    writes: Lane,
}

/// The places of one sort of request.
#[derive(Debug)]
struct Lane {
    limit: usize,
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            reads: Lane::new(READS_LIMIT),
            writes: Lane::new(WRITES_LIMIT),
        }
    }
}

impl Flow {
    /// A place among the requests in flight.
    pub(crate) async fn enter(&self, method: &Method) -> Result<SemaphorePermit<'_>, Status> {
        let lane = match *method {
            Method::GET | Method::HEAD => &self.reads,
            _ => &self.writes,
        };
        lane.enter().await
    }

    /// How many requests are in flight that only read, and that may write.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        (self.reads.in_flight(), self.writes.in_flight())
    }
}

impl Lane {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            running: Semaphore::new(limit),
            waiting: Semaphore::new(WAITING_LIMIT),
        }
    }

    async fn enter(&self) -> Result<SemaphorePermit<'_>, Status> {
        if let Ok(place) = self.running.try_acquire() {
            return Ok(place);
        }
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(overloaded());
        };
        match tokio::time::timeout(WAIT_LIMIT, self.running.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(overloaded()),
        }
    }

    fn in_flight(&self) -> usize {
        self.limit.saturating_sub(self.running.available_permits())
    }
}

/// 429 in upstream's words.
pub(crate) fn overloaded() -> Status {
    let message = "Too many requests, please try again later.";
    Status::too_many_requests(message, RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn request_waits_for_a_place_and_is_refused_when_none_becomes_free() {
        let flow = Flow::default();
        let mut places = Vec::new();
        for _ in 0..WRITES_LIMIT {
            places.push(flow.enter(&Method::POST).await.unwrap());
        }
        assert_eq!(flow.in_flight(), (0, WRITES_LIMIT));
        assert!(
            flow.enter(&Method::GET).await.is_ok(),
            "reads have their own"
        );
        let refused = flow.enter(&Method::POST).await.unwrap_err();
        assert_eq!(refused.code(), 429);
        assert_eq!(refused.retry_after(), Some(RETRY_AFTER));
        let (entered, ()) = tokio::join!(flow.enter(&Method::POST), async {
            tokio::time::sleep(WAIT_LIMIT / 2).await;
            places.pop();
        });
        assert!(entered.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_wait_than_there_is_room_for() {
        let lane = Lane {
            waiting: Semaphore::new(0),
            ..Lane::new(1)
        };
        let _place = lane.enter().await.unwrap();
        let before = tokio::time::Instant::now();
        assert_eq!(lane.enter().await.unwrap_err().code(), 429);
        assert_eq!(before.elapsed(), Duration::ZERO);
    }
}
