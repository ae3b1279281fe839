//! Rules: which requests, and what goes wrong with them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::request::RequestFacts;

/// The longest delay that a rule may ask for.
const DELAY_LIMIT: Duration = Duration::from_secs(3600);

/// The words of a rule, for error messages.
const ACTIONS: &str = "drop, lose, duplicate, delay=DURATION, status=CODE, cut=EVENTS";
const CONDITIONS: &str = "verb, resource, namespace, name, agent, user, at, times, retry-after";

/// One thing that goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The request is not carried out, and its connection breaks.
    DropRequest,
    /// The request is carried out, and its connection breaks before the answer.
    LoseAnswer,
    /// The request is carried out twice, and the second answer is sent.
    Duplicate,
    /// The request waits before it is carried out.
    Delay(Duration),
    /// The request is not carried out, and answered with a code.
    Refuse {
        /// The status code.
        code: u16,
        /// Seconds in the Retry-After header, if there shall be one.
        retry_after: Option<u64>,
    },
    /// A watch breaks after so many events.
    CutWatch(usize),
}

/// One rule. A request that fits all its conditions meets its action.
///
/// As text it is an action and conditions, separated by commas:
/// `status=409,verb=update,resource=deployments.apps,agent=manager,at=2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The action.
    pub action: FaultAction,
    /// A verb of Kubernetes, `read` or `write`; any if empty.
    pub verb: String,
    /// A resource with its group and subresource (`pods/status`, `deployments.apps`); any if empty.
    pub resource: String,
    /// A namespace; any if empty.
    pub namespace: String,
    /// The name of an object; any if empty.
    pub name: String,
    /// A part of the user agent of the client; any if empty.
    pub agent: String,
    /// The name of the user; any if empty.
    pub user: String,
    /// The first request among those that fit, from 1 on, that meets the action.
    pub at: usize,
    /// The number of requests that meet it.
    pub times: usize,
}

/// A text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The text begins with something else than an action.
    #[error("{0:?} is not a fault; faults are: {ACTIONS}")]
    UnknownAction(String),
    /// A word is not a condition.
    #[error(
        "{0:?} is not a condition of a fault; conditions are: {CONDITIONS}, each as name=value"
    )]
    UnknownCondition(String),
    /// The value of a word cannot be read.
    #[error("{value:?} is not a valid {name} of a fault")]
    InvalidValue {
        /// The word.
        name: &'static str,
        /// Its value.
        value: String,
    },
}

impl FaultRule {
    /// A rule for every request.
    #[must_use]
    pub fn new(action: FaultAction) -> Self {
        Self {
            action,
            verb: String::new(),
            resource: String::new(),
            namespace: String::new(),
            name: String::new(),
            agent: String::new(),
            user: String::new(),
            at: 1,
            times: usize::MAX,
        }
    }

    /// Returns true if the conditions fit a request, not counting `at` and `times`.
    #[must_use]
    pub fn fits(&self, request: &RequestFacts<'_>) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let is_verb = match self.verb.as_str() {
            "read" => !request.is_write(),
            "write" => request.is_write(),
            verb => is(verb, request.verb),
        };
        let is_watch = request.verb == "watch";
        is_verb
            && (is_watch || !matches!(self.action, FaultAction::CutWatch(_)))
            && is(&self.resource, request.resource)
            && is(&self.namespace, request.namespace)
            && is(&self.name, request.name)
            && is(&self.user, request.user)
            && request.agent.contains(&self.agent)
    }

    fn set(&mut self, word: &str) -> Result<(), RuleError> {
        let unknown = || RuleError::UnknownCondition(word.to_owned());
        let (name, value) = word.split_once('=').ok_or_else(unknown)?;
        let field = match name {
            "verb" => &mut self.verb,
            "resource" => &mut self.resource,
            "namespace" => &mut self.namespace,
            "name" => &mut self.name,
            "agent" => &mut self.agent,
            "user" => &mut self.user,
            "at" => {
                self.at = positive("at", value)?;
                // A position is one request, unless the rule says otherwise.
                if self.times == usize::MAX {
                    self.times = 1;
                }
                return Ok(());
            }
            "times" => {
                self.times = positive("times", value)?;
                return Ok(());
            }
            "retry-after" => return self.set_retry_after(value),
            _ => return Err(unknown()),
        };
        value.clone_into(field);
        Ok(())
    }

    fn set_retry_after(&mut self, value: &str) -> Result<(), RuleError> {
        let seconds = value.parse().map_err(|_| invalid("retry-after", value))?;
        match &mut self.action {
            FaultAction::Refuse { retry_after, .. } => {
                *retry_after = Some(seconds);
                Ok(())
            }
            _ => Err(invalid("retry-after", value)),
        }
    }
}

impl FromStr for FaultAction {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match (name, value) {
            ("drop", "") => Ok(Self::DropRequest),
            ("lose", "") => Ok(Self::LoseAnswer),
            ("duplicate", "") => Ok(Self::Duplicate),
            ("delay", value) => duration(value).map(Self::Delay),
            ("status", value) => {
                let code = value.parse().ok().filter(|code| (400..=599).contains(code));
                let code = code.ok_or_else(|| invalid("status", value))?;
                let retry_after = (code == 429).then_some(1);
                Ok(Self::Refuse { code, retry_after })
            }
            ("cut", value) => {
                let events = value.parse().map_err(|_| invalid("cut", value))?;
                Ok(Self::CutWatch(events))
            }
            _ => Err(RuleError::UnknownAction(text.to_owned())),
        }
    }
}

impl FromStr for FaultRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = text.split(',').map(str::trim);
        let mut rule = Self::new(words.next().unwrap_or_default().parse()?);
        words.try_for_each(|word| rule.set(word))?;
        Ok(rule)
    }
}

fn invalid(name: &'static str, value: &str) -> RuleError {
    RuleError::InvalidValue {
        name,
        value: value.to_owned(),
    }
}

fn positive(name: &'static str, value: &str) -> Result<usize, RuleError> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| invalid(name, value))
}

/// A number with `ms` or `s`.
fn duration(value: &str) -> Result<Duration, RuleError> {
    let read = |digits: &str| digits.parse::<u64>().ok();
    let duration = match (value.strip_suffix("ms"), value.strip_suffix('s')) {
        (Some(digits), _) => read(digits).map(Duration::from_millis),
        (None, Some(digits)) => read(digits).map(Duration::from_secs),
        (None, None) => None,
    };
    let duration = duration.filter(|duration| *duration <= DELAY_LIMIT);
    duration.ok_or_else(|| invalid("delay", value))
}

impl fmt::Display for FaultAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropRequest => f.write_str("drop"),
            Self::LoseAnswer => f.write_str("lose"),
            Self::Duplicate => f.write_str("duplicate"),
            Self::Delay(delay) => write!(f, "delay={}ms", delay.as_millis()),
            Self::Refuse { code, .. } => write!(f, "status={code}"),
            Self::CutWatch(events) => write!(f, "cut={events}"),
        }
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.action)?;
        let conditions = [
            ("verb", &self.verb),
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("agent", &self.agent),
            ("user", &self.user),
        ];
        for (name, value) in conditions
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
        {
            write!(f, ",{name}={value}")?;
        }
        if let FaultAction::Refuse {
            retry_after: Some(seconds),
            ..
        } = self.action
        {
            write!(f, ",retry-after={seconds}")?;
        }
        if self.at != 1 || self.times == 1 {
            write!(f, ",at={}", self.at)?;
        }
        match self.times {
            1 => Ok(()),
            usize::MAX if self.at == 1 => Ok(()),
            times => write!(f, ",times={times}"),
        }
    }
}
