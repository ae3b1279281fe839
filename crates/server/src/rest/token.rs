//! Tokens for service accounts.

use http::{Response, StatusCode};
use windlass_core::{Doc, Gvk};

use super::ask::Question;
use super::{Call, object};
use crate::body::Body;
use windlass_access::matching::OperationType;
use windlass_access::token::Claims;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

const REQUEST: Gvk = Gvk::constant("authentication.k8s.io", "v1", "TokenRequest");
const SECONDS_DEFAULT: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

pub(super) async fn create(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let request = object::decode(call, &REQUEST, options.validation, &mut Vec::new())?;
    let operation = call.operation();
    crate::admission::token(&operation.admission(), operation.name, &request)?;
    let account = call.find()?;
    let request = Question {
        operation,
        sort: OperationType::Create,
        kind: REQUEST,
        object: request,
        dry_run: options.dry_run,
    };
    let request = request.ask().await?;
    let seconds = request
        .at("/spec/expirationSeconds")
        .as_i64()
        .unwrap_or(SECONDS_DEFAULT);
    check_seconds(seconds)?;
    let given = request.at("/spec/audiences").items();
    let mut audiences: Vec<String> = given
        .iter()
        .filter_map(|audience| audience.as_str().map(str::to_owned))
        .collect();
    let signer = call.server.inner().authenticator.signer();
    if audiences.is_empty() {
        audiences.extend_from_slice(signer.audiences());
    }
    let claims = Claims {
        namespace: call.namespace().to_owned(),
        name: account.meta().name().to_owned(),
        uid: account.meta().uid_str().to_owned(),
        audiences: audiences.clone(),
        seconds,
        bound_to: bound_object(call, &request)?,
    };
    let (token, end) = signer
        .sign(&claims)
        .ok_or_else(|| Status::internal("the token could not be signed"))?;
    let audiences: Vec<Doc> = audiences.iter().map(Doc::from).collect();
    let answer = object::put(request, "/spec/expirationSeconds", seconds);
    let answer = object::put(answer, "/spec/audiences", audiences);
    let answer = object::put(answer, "/status/token", token);
    let answer = object::put(answer, "/status/expirationTimestamp", end.to_string());
    let answer = object::edit_metadata(&answer, |metadata| {
        let metadata = metadata.with("name", account.meta().name().into());
        let now = call.server.inner().env.now();
        metadata
            .with("namespace", call.namespace().into())
            .with("creationTimestamp", now.to_string().into())
    });
    call.answer(StatusCode::CREATED, &answer)
}

fn check_seconds(seconds: i64) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let field = FieldPath::new("spec.expirationSeconds");
    if seconds < SECONDS_MIN {
        errors.invalid(
            &field,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > SECONDS_MAX {
        errors.invalid(
            &field,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    if errors.is_empty() {
        return Ok(());
    }
    // A request has no name of its own.
    Err(Status::invalid(&REQUEST.group_kind(), "", &errors))
}

/// The object with whose end the token ends, which has to exist.
fn bound_object(call: &Call, request: &Doc) -> Result<Option<(String, String, String)>, Status> {
    let wanted = request.at("/spec/boundObjectRef");
    if wanted.is_null() {
        return Ok(None);
    }
    let (kind, name) = (wanted.str_at("/kind"), wanted.str_at("/name"));
    let (resource, namespace) = match kind {
        "Pod" => ("pods", call.namespace()),
        "Secret" => ("secrets", call.namespace()),
        "Node" => ("nodes", ""),
        other => {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to kind {other:?}",
                call.path.name
            )));
        }
    };
    let group_resource = windlass_core::GroupResource::new("", resource);
    let found = call
        .server
        .inner()
        .storage
        .find("", resource, namespace, name);
    let found = found.ok_or_else(|| Status::not_found(&group_resource, name))?;
    let (uid, wanted_uid) = (found.meta().uid_str(), wanted.str_at("/uid"));
    if !wanted_uid.is_empty() && wanted_uid != uid {
        let why = format!(
            "the UID in the bound object reference ({wanted_uid}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(&group_resource, name, &why));
    }
    let account = found.str_at("/spec/serviceAccountName");
    if kind == "Pod"
        && account != call.path.name
        && !(account.is_empty() && call.path.name == "default")
    {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount \
             name.",
            call.path.name
        )));
    }
    Ok(Some((
        kind.to_ascii_lowercase(),
        name.to_owned(),
        uid.to_owned(),
    )))
}
