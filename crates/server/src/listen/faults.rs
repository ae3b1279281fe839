//! Carrying out faults between a socket and the server, for tests of clients.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request};
use http_body_util::{BodyExt as _, Full};
use windlass_access::User;
use windlass_core::{GroupResource, doc};
use windlass_faults::{FaultAction, FaultPlan, FaultRule, RequestFacts};
use windlass_rules::status::Status;

use crate::body::{Arriving, Body, arriving};
use crate::query::Query;
use crate::request::{Target, bearer};
use crate::respond;
use crate::server::Server;

/// The page where administrators see and change the rules.
const CONTROL_PATH: &str = "/debug/windlass/faults";

/// The group of those who may.
const ADMIN_GROUP: &str = "system:masters";

/// Bytes of a request that is carried out twice; one byte more is refused, as the server would.
const DUPLICATED_BYTES_LIMIT: usize = 3 << 20;

/// A connection, or a stream of one, that breaks because of a fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken by a fault")
    }
}

impl std::error::Error for Broken {}

/// The number of events after which a watch breaks, among the extensions of its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutAfter(pub(super) usize);

/// Answers a request, unless a fault of the plan meets it.
pub(super) async fn answer(
    server: &Server,
    plan: &FaultPlan,
    request: Request<Arriving>,
) -> Result<Response<Body>, Broken> {
    let (parts, body) = request.into_parts();
    let user = user(server, &parts);
    if parts.uri.path() == CONTROL_PATH && user.as_ref().is_some_and(|it| it.is_in(ADMIN_GROUP)) {
        return Ok(control(plan, &parts));
    }
    let described = Described::of(&parts, user.as_ref());
    let decision = plan.decide(&described.facts());
    let request = Request::from_parts(parts, body);
    let Some(action) = decision.action else {
        let response = server.handle_request(request).await;
        plan.answered(decision.number, response.status().as_u16());
        return Ok(response);
    };
    tracing::info!(
        fault = %action, verb = described.verb, resource = described.resource,
        "a fault meets a request"
    );
    let answer = carry_out(server, &action, &described, request).await;
    if let Ok(response) = &answer {
        plan.answered(decision.number, response.status().as_u16());
    }
    match action {
        FaultAction::LoseAnswer => Err(Broken),
        _ => answer,
    }
}

/// Carries a request out in the way of a fault.
async fn carry_out(
    server: &Server,
    action: &FaultAction,
    described: &Described,
    request: Request<Arriving>,
) -> Result<Response<Body>, Broken> {
    match action {
        FaultAction::DropRequest => Err(Broken),
        FaultAction::LoseAnswer => Ok(server.handle_request(request).await),
        FaultAction::Duplicate => twice(server, request).await,
        FaultAction::Delay(delay) => {
            tokio::time::sleep(*delay).await;
            Ok(server.handle_request(request).await)
        }
        FaultAction::Refuse { code, retry_after } => Ok(refusal(*code, *retry_after, described)),
        FaultAction::CutWatch(events) => {
            let mut response = server.handle_request(request).await;
            response.extensions_mut().insert(CutAfter(*events));
            Ok(response)
        }
    }
}

/// Carries a request out twice, as a retry after a lost answer does, and answers as the second
/// time.
async fn twice(server: &Server, request: Request<Arriving>) -> Result<Response<Body>, Broken> {
    let (parts, body) = request.into_parts();
    let limited = http_body_util::Limited::new(body, DUPLICATED_BYTES_LIMIT);
    let Ok(body) = limited.collect().await else {
        return Ok(respond::status(&Status::too_large(
            "Request entity too large: limit is 3145728",
        )));
    };
    let bytes: Bytes = body.to_bytes();
    let once = || arriving(Full::new(bytes.clone()));
    let first = Request::from_parts(parts.clone(), once());
    drop(server.handle_request(first).await);
    Ok(server
        .handle_request(Request::from_parts(parts, once()))
        .await)
}

/// The answer of a server that refuses a request with a code.
fn refusal(code: u16, retry_after: Option<u64>, described: &Described) -> Response<Body> {
    let why = "refused by a fault";
    let group_resource = GroupResource::new(described.group.clone(), described.plural.clone());
    let seconds = Duration::from_secs(retry_after.unwrap_or_default());
    let status = match code {
        404 => Status::not_found(&group_resource, &described.name),
        409 => Status::modified(&group_resource, &described.name),
        429 => Status::too_many_requests(why, seconds),
        503 => Status::unavailable(why),
        504 => Status::timeout(why),
        _ => Status::internal(why),
    };
    let mut response = respond::status(&status);
    if let Ok(code) = StatusCode::from_u16(code) {
        *response.status_mut() = code;
    }
    match retry_after {
        Some(seconds) => drop(
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into()),
        ),
        None => drop(response.headers_mut().remove(header::RETRY_AFTER)),
    }
    response
}

/// The user of a request; nothing if its credentials are not good.
fn user(server: &Server, parts: &request::Parts) -> Option<User> {
    if let Some(user) = parts.extensions.get::<User>() {
        return Some(user.clone());
    }
    let inner = server.inner();
    let bearer = bearer(&parts.headers);
    inner.authenticator.user(bearer, &inner.storage).ok()
}

/// Shows and changes the rules: GET, POST with `rule` parameters, DELETE.
fn control(plan: &FaultPlan, parts: &request::Parts) -> Response<Body> {
    let query = match Query::parse(parts.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(status) => return respond::status(&status),
    };
    match parts.method {
        Method::GET => {}
        Method::DELETE => plan.clear(),
        Method::POST => {
            let rules: Result<Vec<FaultRule>, _> = query.all("rule").map(str::parse).collect();
            match rules {
                Ok(rules) => rules.into_iter().for_each(|rule| plan.add(rule)),
                Err(error) => return respond::status(&Status::bad_request(error.to_string())),
            }
        }
        _ => return respond::status(&Status::method_unknown()),
    }
    let seen: Vec<_> = plan.seen().iter().map(|seen| seen.describe()).collect();
    let page = plan.describe();
    let page = page.with("/seen", doc!(seen)).unwrap_or(page);
    respond::json(StatusCode::OK, &page, true)
}

/// A request as rules see it.
struct Described {
    verb: String,
    group: String,
    plural: String,
    /// The resource with its group and subresource.
    resource: String,
    namespace: String,
    name: String,
    agent: String,
    user: String,
}

impl Described {
    fn of(parts: &request::Parts, user: Option<&User>) -> Self {
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        let mut described = Self {
            verb: parts.method.as_str().to_ascii_lowercase(),
            group: String::new(),
            plural: String::new(),
            resource: parts.uri.path().to_owned(),
            namespace: String::new(),
            name: String::new(),
            agent: agent.unwrap_or_default().to_owned(),
            user: user.map_or(String::new(), |user| user.name.clone()),
        };
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let target = query.and_then(|query| Target::read(&parts.method, parts.uri.path(), &query));
        if let Ok(Target::Resource(path)) = target {
            described.resource = match path.group.as_str() {
                "" => path.resource.clone(),
                group => format!("{}.{group}", path.resource),
            };
            if !path.subresource.is_empty() {
                described.resource += &format!("/{}", path.subresource);
            }
            if let Some(verb) = path.verb {
                described.verb = verb.as_str().to_owned();
            }
            described.group = path.group;
            described.plural = path.resource;
            described.namespace = path.namespace;
            described.name = path.name;
        }
        described
    }

    fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            verb: &self.verb,
            resource: &self.resource,
            namespace: &self.namespace,
            name: &self.name,
            agent: &self.agent,
            user: &self.user,
        }
    }
}
