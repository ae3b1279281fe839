//! Who set which field: `metadata.managedFields` of every write.

use http::header;
use windlass_atlas::Atlas;
use windlass_atlas::apply::{
    AtlasSchema, Deduced, FieldSet, Merging, ScalePaths, Write, scale_entries,
};
use windlass_core::{Doc, Time};

use super::Call;
use super::object;
use super::operation::Operation;
use super::write::Part;
use crate::registry::Resource;
use crate::server::Server;

/// The longest name of a manager, in bytes.
const MANAGER_LIMIT: usize = 128;
const POINTER: &str = "/metadata/managedFields";

/// Who writes, and when.
#[derive(Clone, Debug)]
pub(super) struct Author {
    pub(super) manager: String,
    pub(super) time: Time,
}

impl Author {
    /// The author of a request: the manager it names, or else the program that sends it.
    pub(super) fn of(call: &Call, manager: &str) -> Self {
        let agent = call.headers.get(header::USER_AGENT);
        let agent = agent.map_or(&b""[..], |agent| agent.as_bytes());
        Self {
            manager: match manager {
                "" => program(&String::from_utf8_lossy(agent)),
                name => name.to_owned(),
            },
            time: call.server.inner().env.now(),
        }
    }

    /// Nobody: what the server does on behalf of somebody has no author.
    pub(super) fn nobody(server: &Server) -> Self {
        Self {
            manager: String::new(),
            time: server.inner().env.now(),
        }
    }

    /// The author of an object that the server itself makes.
    pub(super) fn at_start(server: &Server, resource: &Resource) -> Self {
        Self {
            manager: resource.hooks.first_manager().to_owned(),
            time: server.inner().env.now(),
        }
    }
}

/// The name of a program in its own description of itself, such as `kubectl/v1.36.4 (linux)`.
fn program(agent: &str) -> String {
    let mut name = String::new();
    let first = agent.split('/').next().unwrap_or_default();
    for c in first.chars().filter(|c| !c.is_control()) {
        if name.len() + c.len_utf8() > MANAGER_LIMIT {
            break;
        }
        name.push(c);
    }
    name
}

/// Runs `work` with how objects of a kind merge.
pub(super) fn with_merging<T>(resource: &Resource, work: impl FnOnce(&dyn Merging) -> T) -> T {
    match (resource.hooks.merging(), Atlas::kind(&resource.gvk)) {
        (Some(own), _) => work(own),
        (None, Some(kind)) => work(&AtlasSchema::of(kind)),
        (None, None) => work(&Deduced),
    }
}

/// A new object with the fields that its author has set.
pub(super) fn created(server: &Server, resource: &Resource, new: &Doc, author: &Author) -> Doc {
    let ignored = ignored(resource, Part::Main);
    let api_version = resource.gvk.api_version();
    let write = Write {
        manager: &author.manager,
        subresource: "",
        api_version: &api_version,
        time: author.time,
        ignored: &ignored,
    };
    let memory = &server.inner().creations;
    with_merging(resource, |merging| merging.create(new, &write, memory))
}

/// A changed object with what its author has set, taken from those who had set it before.
pub(super) fn updated(write: &super::write::Write<'_>, old: &Doc, new: &Doc) -> Doc {
    let operation = &write.operation;
    let api_version = operation.resource.gvk.api_version();
    with_write(
        operation,
        write.part,
        &api_version,
        &write.author,
        |write| {
            with_merging(operation.resource, |merging| {
                merging.track(Some(old), new, write)
            })
        },
    )
}

/// Runs `work` with what is to be known of a write to a part of an object.
pub(super) fn with_write<T>(
    operation: &Operation<'_>,
    part: Part,
    api_version: &str,
    author: &Author,
    work: impl FnOnce(&Write<'_>) -> T,
) -> T {
    let ignored = ignored(operation.resource, part);
    work(&Write {
        manager: &author.manager,
        subresource: operation.subresource,
        api_version,
        time: author.time,
        ignored: &ignored,
    })
}

/// The fields that a write to a part does not change.
fn ignored(resource: &Resource, part: Part) -> FieldSet {
    match part {
        Part::New | Part::First | Part::Main | Part::Finalize if resource.has_status() => {
            FieldSet::of_fields(&[&["status"]])
        }
        Part::Status => FieldSet::of_fields(resource.hooks.status_resets()),
        _ => FieldSet::new(),
    }
}

/// Says what is wrong with managed fields that an extension has changed.
pub(super) fn check_readable(entries: &Doc) -> Result<(), String> {
    let nothing = ScalePaths {
        api_version: "",
        replicas: &[],
    };
    match scale_entries(entries.items(), &nothing) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// An object without its managers.
pub(super) fn without_managers(object: Doc) -> Doc {
    object::cut(object, POINTER)
}

/// An object with the managers of another.
pub(super) fn with_managers_of(object: Doc, other: &Doc) -> Doc {
    match other.at(POINTER) {
        none if none.is_null() => object::cut(object, POINTER),
        entries if entries == object.at(POINTER) => object,
        entries => object::put(object, POINTER, entries),
    }
}

/// An object that differs from the old one in nothing but the times at which fields were set, is
/// the old one.
pub(super) fn without_new_times(new: Doc, old: &Doc) -> Doc {
    let (entries, before) = (new.at(POINTER).items(), old.at(POINTER).items());
    if entries.is_empty() || entries.len() != before.len() || entries == before {
        return new;
    }
    let timeless = |entry: &Doc| object::cut(entry.clone(), "/time");
    let is_same = entries.iter().map(timeless).eq(before.iter().map(timeless));
    if !is_same {
        return new;
    }
    let reverted = with_managers_of(new.clone(), old);
    if reverted == *old { reverted } else { new }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_what_stands_before_the_first_slash() {
        assert_eq!(program("kubectl/v1.36.4 (linux/amd64)"), "kubectl");
        assert_eq!(program(""), "");
        assert_eq!(program("a\u{7}b"), "ab");
        assert_eq!(program(&"é".repeat(100)).len(), MANAGER_LIMIT);
    }
}
