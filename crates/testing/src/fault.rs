//! Faults between a client and its server.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE};
use parking_lot::Mutex;
use tokio::time::sleep;
use tower::{Layer, Service};
use windlass_client::{BoxError, Content, Payload, Status, TransportError, Watching};
use windlass_core::Doc;

/// What goes wrong with one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It is sent after this time.
    Delay(Duration),
    /// It is carried out, and the answer comes after this time.
    DelayAnswer(Duration),
    /// It is never sent, and the client knows.
    NotSent,
    /// It is never carried out, and the client does not know.
    LostRequest,
    /// It is carried out, and the client does not know.
    LostAnswer,
    /// It is never sent and never answered: the process stands still before the call.
    Stall,
    /// It is carried out and never answered: the process stands still after the call.
    StallAfter,
    /// The server refuses it with a code and a reason.
    Refuse(u16, &'static str),
}

/// One call, for the choice of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The how-manieth it is, from zero on.
    pub number: usize,
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// Whether it is a watch.
    pub is_watch: bool,
}

impl Call {
    /// Whether it would change something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !self.method.is_safe()
    }
}

type Choose = Box<dyn FnMut(&Call) -> Fault + Send>;

/// Decides for each call what goes wrong with it. Clones share the decision, which can be changed
/// while calls are made.
#[derive(Clone)]
pub struct Faults(Arc<Mutex<Plan>>);

struct Plan {
    choose: Choose,
    calls: usize,
}

impl Faults {
    /// Nothing goes wrong, until told otherwise.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| Fault::None)
    }

    /// Asks a function about each call.
    pub fn new(choose: impl FnMut(&Call) -> Fault + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Plan {
            choose: Box::new(choose),
            calls: 0,
        })))
    }

    /// Asks another function from now on.
    pub fn set(&self, choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.0.lock().choose = Box::new(choose);
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.0.lock().calls
    }

    fn next(&self, request: &http::Request<Payload>) -> Fault {
        let mut plan = self.0.lock();
        let call = Call {
            number: plan.calls,
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            is_watch: request.extensions().get::<Watching>().is_some(),
        };
        plan.calls += 1;
        (plan.choose)(&call)
    }
}

impl<S> Layer<S> for Faults {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> FaultService<S> {
        FaultService {
            inner,
            faults: self.clone(),
        }
    }
}

/// A transport behind [`Faults`].
#[derive(Clone, Debug)]
pub struct FaultService<S> {
    inner: S,
    faults: Faults,
}

type Answer = Result<Response<Content>, BoxError>;

impl<S> Service<http::Request<Payload>> for FaultService<S>
where
    S: Service<http::Request<Payload>, Response = Response<Content>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<Content>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        let fault = self.faults.next(&request);
        let mut inner = self.inner.clone();
        Box::pin(async move {
            let send = async || inner.call(request).await.map_err(Into::into);
            match fault {
                Fault::None => send().await,
                Fault::Delay(delay) => {
                    sleep(delay).await;
                    send().await
                }
                Fault::DelayAnswer(delay) => {
                    let answer = send().await;
                    sleep(delay).await;
                    answer
                }
                Fault::NotSent => Err(lost(false)),
                Fault::LostRequest => Err(lost(true)),
                Fault::LostAnswer => {
                    drop(send().await);
                    Err(lost(true))
                }
                Fault::Stall => std::future::pending().await,
                Fault::StallAfter => {
                    drop(send().await);
                    std::future::pending().await
                }
                Fault::Refuse(code, reason) => Ok(refusal(code, reason)),
            }
        })
    }
}

fn lost(may_have_arrived: bool) -> BoxError {
    let source = "connection reset by a fault".into();
    TransportError {
        may_have_arrived,
        source,
    }
    .into()
}

fn refusal(code: u16, reason: &str) -> Response<Content> {
    let status = Doc::encode(&Status::failure(code, reason, "refused by a fault"));
    let mut response = Response::new(Content::Doc(status.unwrap_or(Doc::NULL)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("calls", &self.calls())
            .finish_non_exhaustive()
    }
}
