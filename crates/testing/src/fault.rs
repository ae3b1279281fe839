//! Faults between a client and its server.

mod line;
mod service;
mod watch;

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Layer;
use windlass_client::{Payload, Watching};
use windlass_core::Doc;

use line::Line;
pub use service::FaultService;

/// How many requests are remembered; older ones are forgotten.
const SEEN_MAX: usize = 65_536;

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
    /// The server refuses it with 429 and says when to come back.
    Throttle(Duration),
    /// The process ends here: this call and all others of it never return, and its watches bring
    /// nothing more.
    Crash(Position),
    /// The watch ends after so many events.
    Cut(usize),
    /// Each event of the watch comes so much later.
    Lag(Duration),
}

/// Where in a call a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before the server sees it.
    BeforeSend,
    /// After it was carried out and before it is answered.
    Unanswered,
    /// After the answer.
    AfterReply,
}

impl Position {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BeforeSend, Self::Unanswered, Self::AfterReply];
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeSend => "before it is sent",
            Self::Unanswered => "carried out and not answered",
            Self::AfterReply => "after the reply",
        })
    }
}

/// One call, for the choice of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The how-manieth it is, from zero on.
    pub number: usize,
    /// The process that makes it; empty unless it was named.
    pub process: Arc<str>,
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

/// One call as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The call.
    pub call: Call,
    /// What was asked beside the path.
    pub query: String,
    /// What it carried.
    pub payload: Doc,
    /// When it was made.
    pub at: Instant,
    /// What went wrong with it.
    pub fault: Fault,
    /// What the server answered, whether or not the answer arrived. `None` if the server has not
    /// seen the call, or not answered yet.
    pub answer: Option<Answered>,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status code.
    pub code: u16,
    /// The object, if it was a single one in the form of a document.
    pub object: Doc,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, query, .. } = self;
        write!(
            f,
            "{:>4} {} {} {}",
            call.number, call.process, call.method, call.path
        )?;
        if !query.is_empty() {
            write!(f, "?{query}")?;
        }
        if !self.payload.is_null() {
            write!(f, " {}", String::from_utf8_lossy(&self.payload.to_json()))?;
        }
        match &self.answer {
            Some(answer) => write!(f, " -> {}", answer.code)?,
            None => f.write_str(" -> not answered")?,
        }
        if self.fault != Fault::None {
            write!(f, " [{:?}]", self.fault)?;
        }
        Ok(())
    }
}

type Choose = Box<dyn FnMut(&Call) -> Fault + Send>;
type Look = Arc<dyn Fn(&Seen) + Send + Sync>;

/// Decides for each call what goes wrong with it, and remembers all calls. Clones share the
/// decision, which can be changed while calls are made.
///
/// It is a layer, and so stands in front of any transport. Only watches that bring documents can
/// be cut and made to lag.
#[derive(Clone)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
    line: Arc<Line>,
}

struct Plan {
    choose: Choose,
    calls: usize,
    /// The newest calls; the first one has the number `calls - seen.len()`.
    seen: VecDeque<Seen>,
    look: Option<Look>,
}

impl Faults {
    /// Nothing goes wrong, until told otherwise.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| Fault::None)
    }

    /// Asks a function about each call.
    pub fn new(choose: impl FnMut(&Call) -> Fault + Send + 'static) -> Self {
        Self {
            plan: Arc::new(Mutex::new(Plan {
                choose: Box::new(choose),
                calls: 0,
                seen: VecDeque::new(),
                look: None,
            })),
            line: Arc::new(Line::new("".into())),
        }
    }

    /// The same decision and memory for another process, or for the next life of one: a crash of
    /// one leaves the others alone.
    #[must_use]
    pub fn process(&self, name: &str) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            line: Arc::new(Line::new(name.into())),
        }
    }

    /// Asks another function from now on.
    pub fn set(&self, choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.plan.lock().choose = Box::new(choose);
    }

    /// Shows each call to a function once it was answered or has come to nothing.
    pub fn look(&self, look: impl Fn(&Seen) + Send + Sync + 'static) {
        self.plan.lock().look = Some(Arc::new(look));
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.plan.lock().calls
    }

    /// The calls so far, of all processes.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.plan.lock().seen.iter().cloned().collect()
    }

    /// Ends all watches of this process that are open, as a broken connection does.
    pub fn cut_watches(&self) {
        self.line.cut();
    }

    /// From now on each event of every watch of this process comes so much later, or at once
    /// again.
    pub fn lag_watches(&self, by: Duration) {
        self.line.lag(by);
    }

    /// Waits until this process has crashed.
    pub async fn crashed(&self) {
        self.line.dead().await;
    }

    /// Ends the process now.
    pub fn crash(&self) {
        self.line.kill();
    }

    fn next(&self, request: &http::Request<Payload>) -> (usize, Fault) {
        let mut plan = self.plan.lock();
        let number = plan.calls;
        let call = Call {
            number,
            process: Arc::clone(&self.line.process),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            is_watch: request.extensions().get::<Watching>().is_some(),
        };
        plan.calls += 1;
        let fault = (plan.choose)(&call);
        if plan.seen.len() == SEEN_MAX {
            plan.seen.pop_front();
        }
        plan.seen.push_back(Seen {
            call,
            query: request.uri().query().unwrap_or("").to_owned(),
            payload: document(request.body()),
            at: Instant::now(),
            fault: fault.clone(),
            answer: None,
        });
        (number, fault)
    }

    /// Notes what the server answered.
    fn note(&self, number: usize, answer: Option<Answered>) {
        let (look, seen) = {
            let mut plan = self.plan.lock();
            let first = plan.calls - plan.seen.len();
            let at = number.checked_sub(first);
            let Some(seen) = at.and_then(|at| plan.seen.get_mut(at)) else {
                return;
            };
            seen.answer = answer;
            let seen = seen.clone();
            (plan.look.clone(), seen)
        };
        if let Some(look) = look {
            look(&seen);
        }
    }
}

fn document(payload: &Payload) -> Doc {
    match payload {
        Payload::Doc(doc) => doc.clone(),
        Payload::Empty => Doc::NULL,
        Payload::Bytes(bytes) => Doc::parse(bytes).unwrap_or(Doc::NULL),
    }
}

impl<S> Layer<S> for Faults {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> FaultService<S> {
        FaultService::new(inner, self.clone())
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("calls", &self.calls())
            .finish_non_exhaustive()
    }
}
