//! The verbs, for every kind alike.

mod apply;
mod ask;
mod connect;
mod create;
mod delete;
mod document_order;
mod eviction;
mod fields;
mod follow_up;
mod list;
mod made;
mod metadata;
mod object;
mod operation;
mod patch;
mod pod;
mod scale;
mod size;
mod token;
mod typed;
mod update;
mod watch;
mod write;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use windlass_core::{Doc, GroupResource, ParseError, Parsed};

pub(crate) use apply::apply_status;
pub(crate) use create::{create_at_start, import, set_at_start};
pub(crate) use delete::delete_for_server;
pub(crate) use operation::Operation;
use operation::RequestPart;

use crate::audit::AuditRequest;
use crate::body::Body;
use crate::extension::RequestNotes;
use crate::negotiate::{self, Form, Offer, Route, Wanted};
use crate::query::{ListOptions, Query};
use crate::registry::{Resource, Sub, Subresource};
use crate::request::{ResourcePath, Verb};
use crate::respond;
use crate::server::Server;
use crate::watch::Filter;
use std::sync::Arc;
use windlass_access::{self as auth, User};
use windlass_rules::status::Status;
use windlass_rules::table::{self, Column, Include};
use windlass_schema::resource::GoType;
use write::Part;

/// One request to a resource.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) server: Server,
    pub(crate) resource: Arc<Resource>,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) user: User,
    pub(crate) body: Bytes,
    /// What stands for the body if the caller is in this process.
    pub(crate) given: Option<Doc>,
    /// The deadline, and what extensions leave for the answer.
    pub(crate) notes: Arc<RequestNotes>,
    /// The request in the audit log.
    pub(crate) audit: AuditRequest,
}

/// The document of a request from this process: an extension of a request whose body is empty and
/// whose content type is one of JSON. It is neither written nor parsed.
#[derive(Clone, Debug)]
pub(crate) struct Given(pub(crate) Doc);

/// Answers a request to a resource, and does what it leaves to do.
pub(crate) async fn handle(call: Call) -> Result<Response<Body>, Status> {
    let follow_up = follow_up::of(&call);
    let answer = dispatch(&call).await;
    if let Some(work) = follow_up {
        call.server.follow_up(work).await;
    }
    let warnings = call.notes.take_warnings();
    if warnings.is_empty() {
        return answer;
    }
    let mut response = answer.unwrap_or_else(|status| respond::status(&status));
    respond::warn(&mut response, &warnings);
    Ok(response)
}

async fn dispatch(call: &Call) -> Result<Response<Body>, Status> {
    let Some(verb) = call.path.verb else {
        return Err(Status::method_unknown());
    };
    if !call.is_place_right() {
        return Err(Status::no_such_path());
    }
    if !call.path.subresource.is_empty() {
        return subresource(call, verb).await;
    }
    if !call.resource.allows(verb) || !call.is_verb_here(verb) {
        return Err(Status::method_unknown());
    }
    call.check_route(verb)?;
    if let Some(objects) = made::objects(call) {
        return made::answer(call, &objects);
    }
    if matches!(verb, Verb::Create | Verb::Update | Verb::Patch) {
        // Nothing is written whose answer the client would not accept.
        call.wanted()?;
    }
    match verb {
        Verb::Create => create::create(call).await,
        Verb::Get => get(call).await,
        Verb::List => list::list(call).await,
        Verb::Watch => watch::watch(call).await,
        Verb::Update => update::update(call, Part::Main).await,
        Verb::Patch => patch::patch(call, Part::Main).await,
        Verb::Delete => delete::delete(call).await,
        Verb::DeleteCollection => delete::delete_collection(call).await,
    }
}

async fn subresource(call: &Call, verb: Verb) -> Result<Response<Body>, Status> {
    let Some(sub) = call.resource.subresource(&call.path.subresource) else {
        return Err(match connect::is_connection(call) {
            true => connect::refusal(call, verb).await,
            false => Status::no_such_path(),
        });
    };
    if !sub.verbs.contains(&verb) {
        return Err(Status::method_unknown());
    }
    let sub: Subresource = sub.clone();
    if sub.sort != Sub::Log {
        call.check_route(verb)?;
        call.wanted()?;
    }
    match (sub.sort, verb) {
        (Sub::Scale, Verb::Get) => scale::get(call),
        (Sub::Scale, Verb::Update) => scale::update(call).await,
        (Sub::Scale, _) => scale::patch(call).await,
        (Sub::Binding, _) => pod::bind(call).await,
        (Sub::Eviction, _) => eviction::evict(call).await,
        (Sub::Token, _) => token::create(call).await,
        (Sub::Log, _) => connect::log(call),
        (_, Verb::Get) => get(call).await,
        (sort, Verb::Update) => update::update(call, part(sort)).await,
        (sort, _) => patch::patch(call, part(sort)).await,
    }
}

/// Which part of an object a subresource writes.
fn part(sub: Sub) -> Part {
    match sub {
        Sub::Status => Part::Status,
        Sub::Finalize => Part::Finalize,
        Sub::Part(pointers) => Part::Only(pointers),
        Sub::Resize(pointers) => Part::Counted(pointers),
        Sub::Scale | Sub::Binding | Sub::Eviction | Sub::Token | Sub::Log => Part::Main,
    }
}

async fn get(call: &Call) -> Result<Response<Body>, Status> {
    if call.query.flag("export") == Some(true) {
        return Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    let revision = call.query.revision().map_err(Status::plain)?;
    list::wait_for(call, &revision).await?;
    let object = call.find()?;
    call.answer(StatusCode::OK, &object)
}

impl Call {
    /// Whether the request carries nothing.
    fn is_bare(&self) -> bool {
        self.body.is_empty() && self.given.is_none()
    }

    /// The document in a body of JSON; keys that come twice are listed, and the last one counts.
    fn parse_json(&self) -> Result<Parsed, ParseError> {
        windlass_store::debug_assert_not_deciding("parsing");
        match &self.given {
            Some(doc) => Ok(Parsed {
                doc: doc.clone(),
                duplicates: Vec::new(),
            }),
            None => self.server.inner().parsers.parse(&self.body),
        }
    }

    /// Whether the path names a namespace exactly when the kind needs one, or lists all of them.
    fn is_place_right(&self) -> bool {
        let path = &self.path;
        match (self.resource.is_namespaced(), path.namespace.is_empty()) {
            (true, true) => {
                path.name.is_empty()
                    || path.verb.is_some_and(Verb::is_read) && self.names_by_selector()
            }
            (true, false) | (false, true) => true,
            (false, false) => self.resource.needs.is_namespace,
        }
    }

    /// Whether the name in the path came from a field selector.
    fn names_by_selector(&self) -> bool {
        matches!(self.path.verb, Some(Verb::List | Verb::Watch))
    }

    /// Whether a verb works at this path: writes to a namespaced kind need a namespace.
    fn is_verb_here(&self, verb: Verb) -> bool {
        let is_everywhere = self.resource.is_namespaced() && self.path.namespace.is_empty();
        let takes_name = matches!(verb, Verb::Update | Verb::Patch | Verb::Delete);
        let fits_name = match verb {
            Verb::Create => self.path.name.is_empty(),
            _ => !takes_name || !self.path.name.is_empty(),
        };
        fits_name && !(is_everywhere && matches!(verb, Verb::Create | Verb::DeleteCollection))
    }

    /// What the request asks for, for the write path.
    pub(crate) fn operation(&self) -> Operation<'_> {
        Operation {
            server: &self.server,
            resource: &self.resource,
            namespace: self.namespace(),
            name: &self.path.name,
            subresource: &self.path.subresource,
            user: &self.user,
            request: Some(RequestPart {
                query: &self.query,
                notes: &self.notes,
            }),
        }
    }

    /// The namespace of the objects that are meant; empty for all and for cluster scope.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.is_namespaced() {
            &self.path.namespace
        } else {
            ""
        }
    }

    /// The resource as messages name it.
    pub(crate) fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The object that the path names.
    pub(crate) fn find(&self) -> Result<Doc, Status> {
        self.operation().find()
    }

    /// An answer with one object in the form that the client wants.
    pub(crate) fn answer(&self, code: StatusCode, object: &Doc) -> Result<Response<Body>, Status> {
        self.answer_with(code, object, &self.resource.columns)
    }

    /// An answer with one object, whose table has these columns.
    pub(crate) fn answer_with(
        &self,
        code: StatusCode,
        object: &Doc,
        columns: &[Column],
    ) -> Result<Response<Body>, Status> {
        let wanted = self.wanted()?;
        // A `Status` has no other form.
        let form = match object.str_at("/kind") {
            "Status" => Form::Whole,
            _ => wanted.form,
        };
        let object = match form {
            Form::Whole | Form::MetadataList => object.clone(),
            Form::Metadata => table::partial_metadata(object),
            Form::Table => {
                let include = Include::parse(self.query.get("includeObject"))?;
                let now = self.server.inner().env.now();
                let row = table::row(columns, object, include, now);
                let revision = object.at("/metadata/resourceVersion");
                let metadata = match revision.is_null() {
                    true => Doc::empty_object(),
                    false => windlass_core::doc!({ "resourceVersion": revision }),
                };
                table::table(table::definitions(columns), vec![row], metadata)
            }
        };
        Ok(respond::object(
            code,
            &object,
            wanted.encoding,
            self.is_pretty(),
        ))
    }

    /// The forms in which objects of this endpoint can be sent.
    fn offer(&self) -> Offer {
        Offer {
            // What is answered and not stored is no row of any table.
            has_table: self.resource.allows(Verb::Get),
            has_protobuf: !self.resource.is_custom,
        }
    }

    /// Refuses a client that accepts nothing of what the path produces. Custom resources have no
    /// routes.
    fn check_route(&self, verb: Verb) -> Result<(), Status> {
        let route = match verb {
            Verb::List | Verb::Watch => Route::Stream,
            _ => Route::Plain,
        };
        match self.resource.is_custom {
            true => Ok(()),
            false => negotiate::check_route(&self.headers, route),
        }
    }

    /// The form in which the client wants one object.
    pub(crate) fn wanted(&self) -> Result<Wanted, Status> {
        let wanted = negotiate::wanted(&self.headers, self.offer())?;
        match wanted.form {
            Form::MetadataList => Err(Status::no_such_form(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 ({})",
                self.resource.go_type(GoType::Object)
            ))),
            _ => Ok(wanted),
        }
    }

    /// The form in which the client wants a list.
    pub(crate) fn wanted_list(&self) -> Result<Wanted, Status> {
        let wanted = negotiate::wanted(&self.headers, self.offer())?;
        match wanted.form {
            Form::Metadata => Err(Status::no_such_form(format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                self.resource.go_type(GoType::List)
            ))),
            _ => Ok(wanted),
        }
    }

    /// The form in which the client wants the objects of a watch.
    pub(crate) fn wanted_watch(&self) -> Result<Wanted, Status> {
        negotiate::wanted_watch(&self.headers, self.offer())
    }

    /// Whether somebody will look at the answer with their own eyes.
    pub(crate) fn is_pretty(&self) -> bool {
        respond::is_pretty(&self.query, &self.headers)
    }

    /// Refuses a second verb that a request needs beside its own.
    pub(crate) fn check_also(&self, verb: Verb) -> Result<(), Status> {
        let mut path = self.path.clone();
        path.verb = Some(verb);
        let target = crate::request::Target::Resource(path);
        let wanted = auth::Attributes::from(&target);
        auth::check(&self.user, &wanted, &self.server.inner().storage)
    }
}

/// The filter of a list, a watch or a delete of many.
fn selection(call: &Call, options: &ListOptions) -> Result<Filter, Status> {
    let mut filter = Filter::parse(&call.resource, &options.labels, &options.fields)?;
    // An item path with `watch` means the object it names.
    if !call.path.name.is_empty() {
        filter.require_name(&call.path.name)?;
    }
    Ok(filter)
}
