//! Connections: one for requests that end, others for watches.
//!
//! A watch holds its stream for minutes. On a connection shared with writes, watches would use up
//! the streams that the server allows per connection, and a stalled watch would hold back the
//! flow-control window of everything else.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use super::{BoxError, BoxFuture, Watching};

/// Streams used on one connection before the next is opened. Servers allow 100 and more.
const WATCHES_PER_CONNECTION: usize = 90;

/// One pool of connections to the server.
pub(super) type Lane =
    BoxCloneSyncService<http::Request<Full<Bytes>>, http::Response<Incoming>, BoxError>;

/// Chooses the connection for each request.
#[derive(Clone)]
pub(super) struct Lanes {
    short: Lane,
    watches: Arc<WatchLanes>,
}

struct WatchLanes {
    make: Box<dyn Fn() -> Lane + Send + Sync>,
    /// Grows with the number of watches at the same time; a lane without watches is kept, its
    /// idle connection is closed by the pool.
    lanes: Mutex<Vec<(Lane, Arc<AtomicUsize>)>>,
}

/// A body that releases its slot on its connection when it is dropped.
pub(super) struct LaneBody {
    body: Incoming,
    _place: Option<Place>,
}

struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lanes {
    pub(super) fn new(make: impl Fn() -> Lane + Send + Sync + 'static) -> Self {
        let watches = WatchLanes {
            make: Box::new(make),
            lanes: Mutex::default(),
        };
        Self {
            short: (watches.make)(),
            watches: Arc::new(watches),
        }
    }
}

impl WatchLanes {
    fn take(&self) -> (Lane, Place) {
        let mut lanes = self.lanes.lock();
        let free = lanes
            .iter()
            .position(|(_, used)| used.load(Ordering::Relaxed) < WATCHES_PER_CONNECTION);
        let at = free.unwrap_or_else(|| {
            lanes.push(((self.make)(), Arc::default()));
            lanes.len() - 1
        });
        let (lane, used) = &lanes[at];
        used.fetch_add(1, Ordering::Relaxed);
        (lane.clone(), Place(Arc::clone(used)))
    }
}

impl Service<http::Request<Full<Bytes>>> for Lanes {
    type Response = http::Response<LaneBody>;
    type Error = BoxError;
    type Future = BoxFuture<Result<http::Response<LaneBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // A lane queues inside; readiness would only tell that it exists.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Full<Bytes>>) -> Self::Future {
        let (lane, place) = match request.extensions().get::<Watching>() {
            Some(Watching) => {
                let (lane, place) = self.watches.take();
                (lane, Some(place))
            }
            None => (self.short.clone(), None),
        };
        Box::pin(async move {
            let response = lane.oneshot(request).await?;
            Ok(response.map(|body| LaneBody {
                body,
                _place: place,
            }))
        })
    }
}

impl http_body::Body for LaneBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
