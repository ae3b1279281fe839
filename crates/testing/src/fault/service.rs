//! A transport behind faults.

use std::{
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use tokio::time::sleep;
use tower::Service;
use windlass_client::{BoxError, Content, Payload, Status, TransportError};
use windlass_core::Doc;

use super::{Answered, Fault, Faults, Position, watch};

/// A transport behind [`Faults`].
#[derive(Clone, Debug)]
pub struct FaultService<S> {
    inner: S,
    faults: Faults,
}

type Answer = Result<Response<Content>, BoxError>;

impl<S> FaultService<S> {
    pub(super) fn new(inner: S, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

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
        if self.faults.line.is_dead() {
            return Box::pin(pending());
        }
        let (number, fault) = self.faults.next(&request);
        let call = One {
            inner: self.inner.clone(),
            request,
            faults: self.faults.clone(),
            number,
        };
        Box::pin(call.run(fault))
    }
}

/// One call on its way.
struct One<S> {
    inner: S,
    request: http::Request<Payload>,
    faults: Faults,
    number: usize,
}

impl<S> One<S>
where
    S: Service<http::Request<Payload>, Response = Response<Content>>,
    S::Error: Into<BoxError>,
{
    async fn run(self, fault: Fault) -> Answer {
        match fault {
            Fault::None => self.send().await,
            Fault::Delay(delay) => {
                sleep(delay).await;
                self.send().await
            }
            Fault::DelayAnswer(delay) => {
                let answer = self.send().await;
                sleep(delay).await;
                answer
            }
            Fault::NotSent => self.lose(false),
            Fault::LostRequest => self.lose(true),
            Fault::LostAnswer => {
                drop(self.send().await);
                Err(lost(true))
            }
            Fault::Stall => pending().await,
            Fault::StallAfter => {
                drop(self.send().await);
                pending().await
            }
            Fault::Refuse(code, reason) => self.refuse(code, reason, None),
            Fault::Throttle(delay) => self.refuse(429, "TooManyRequests", Some(delay)),
            Fault::Crash(position) => self.crash(position).await,
            Fault::Cut(events) => {
                let answer = self.send().await;
                answer.map(|answer| answer.map(|content| watch::cut_after(content, events)))
            }
            Fault::Lag(by) => {
                let answer = self.send().await;
                answer.map(|answer| answer.map(|content| watch::lag(content, by)))
            }
        }
    }

    async fn send(mut self) -> Answer {
        let answer = self.inner.call(self.request).await.map_err(Into::into);
        self.faults
            .note(self.number, answer.as_ref().ok().map(answered));
        let line = &self.faults.line;
        answer.map(|answer| answer.map(|content| watch::on_line(content, line)))
    }

    async fn crash(self, position: Position) -> Answer {
        let faults = self.faults.clone();
        let answer = match position {
            Position::BeforeSend => None,
            Position::Unanswered | Position::AfterReply => Some(self.send().await),
        };
        faults.crash();
        match (position, answer) {
            (Position::AfterReply, Some(answer)) => answer,
            _ => pending().await,
        }
    }

    fn lose(self, may_have_arrived: bool) -> Answer {
        self.faults.note(self.number, None);
        Err(lost(may_have_arrived))
    }

    fn refuse(self, code: u16, reason: &str, retry_after: Option<Duration>) -> Answer {
        let answer = refusal(code, reason, retry_after);
        self.faults.note(self.number, Some(answered(&answer)));
        Ok(answer)
    }
}

fn answered(answer: &Response<Content>) -> Answered {
    let object = match answer.body() {
        Content::Doc(doc) => doc.clone(),
        Content::Body(_) | Content::List(_) | Content::Events(_) => Doc::NULL,
    };
    Answered {
        code: answer.status().as_u16(),
        object,
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

fn refusal(code: u16, reason: &str, retry_after: Option<Duration>) -> Response<Content> {
    let status = Doc::encode(&Status::failure(code, reason, "refused by a fault"));
    let mut response = Response::new(Content::Doc(status.unwrap_or(Doc::NULL)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    response
}
