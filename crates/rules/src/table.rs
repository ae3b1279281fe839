//! Rows and columns for people: the `Table` form of objects and lists.

mod cells;
mod columns;
mod more_cells;

use std::borrow::Cow;
use std::sync::Arc;

use windlass_core::{Doc, Kind, Time, doc};

pub use columns::{
    AGE, API_SERVICE, AUTOSCALER, COMPONENT, CONFIG_MAP, CONTROLLER_REVISION, CREATED_AT, CRON_JOB,
    CSI_DRIVER, CSI_NODE, CUSTOM, DAEMON_SET, DEPLOYMENT, DISRUPTION_BUDGET, ENDPOINT_SLICE,
    ENDPOINTS, EVENT, FLOW_SCHEMA, INGRESS, INGRESS_CLASS, IP_ADDRESS, JOB, LEASE, NAMESPACE,
    NETWORK_POLICY, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, POD_TEMPLATE,
    PRIORITY_CLASS, PRIORITY_LEVEL, REPLICA_SET, RESOURCE_CLAIM, RESOURCE_QUOTA, RESOURCE_SLICE,
    ROLE_BINDING, RUNTIME_CLASS, SCALE, SECRET, SERVICE, SERVICE_CIDR, SIGNING_REQUEST,
    STATEFUL_SET, STORAGE_CLASS, VOLUME_ATTACHMENT, WEBHOOKS,
};

use crate::json_path::JsonPath;
use crate::status::Status;

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The title.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `boolean` or `date`.
    pub sort: Cow<'static, str>,
    /// Zero is always shown, more only on demand.
    pub priority: i64,
    /// The way from an object to the cell.
    pub cell: Cell,
}

/// How a cell is made from an object.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The name of the object.
    Name,
    /// The value at a pointer.
    At(&'static str),
    /// The time passed since the time at a pointer.
    Since(&'static str),
    /// Anything else.
    Made(fn(&Doc) -> Doc),
    /// Anything that depends on the time.
    MadeNow(fn(&Doc, Time) -> Doc),
    /// The value that a definition of a custom resource names.
    Custom(Arc<CustomCell>),
}

/// A column of a custom resource.
#[derive(Debug)]
pub struct CustomCell {
    /// The way to the value.
    pub path: JsonPath,
    /// The `format` of the column's definition.
    pub format: String,
    /// The `description` of the column's definition.
    pub description: String,
}

/// What is sent of each object beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing: the cells alone.
    Nothing,
    /// The metadata.
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Reads the `includeObject` parameter.
    pub fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::Nothing),
            "Object" => Ok(Self::Object),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The definitions of the columns.
#[must_use]
pub fn definitions(columns: &[Column]) -> Doc {
    let define = |column: &Column| {
        let (format, description) = match &column.cell {
            Cell::Name => ("name", ""),
            Cell::Custom(custom) => (custom.format.as_str(), custom.description.as_str()),
            _ => ("", ""),
        };
        doc!({
            "name": (&*column.name), "type": (&*column.sort), "format": format,
            "description": description, "priority": column.priority
        })
    };
    columns.iter().map(define).collect::<Vec<_>>().into()
}

/// The row of one object.
#[must_use]
pub fn row(columns: &[Column], object: &Doc, include: Include, now: Time) -> Doc {
    let cells: Vec<Doc> = columns
        .iter()
        .map(|column| cell(column, object, now))
        .collect();
    let object = match include {
        Include::Nothing => Doc::NULL,
        Include::Metadata => partial_metadata(object),
        Include::Object => object.clone(),
    };
    doc!({ "cells": cells, "object": object })
}

/// A table of some rows.
#[must_use]
pub fn table(definitions: Doc, rows: Vec<Doc>, metadata: Doc) -> Doc {
    doc!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows
    })
}

/// An object of which only the metadata is left.
pub fn partial_metadata(object: &Doc) -> Doc {
    let metadata = object
        .get("metadata")
        .cloned()
        .unwrap_or_else(Doc::empty_object);
    doc!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata
    })
}

fn cell(column: &Column, object: &Doc, now: Time) -> Doc {
    let value = match &column.cell {
        Cell::Name => object.at("/metadata/name").clone(),
        Cell::At(pointer) => object.at(pointer).clone(),
        Cell::Since(pointer) => cells::since(object.at(pointer), now),
        Cell::Made(make) => make(object),
        Cell::MadeNow(make) => make(object, now),
        Cell::Custom(custom) => return custom_cell(custom, &column.sort, object, now),
    };
    match &*column.sort {
        _ if !value.is_null() => value,
        "integer" => Doc::from(0),
        "boolean" => Doc::from(false),
        _ => Doc::from("<none>"),
    }
}

/// The first value that the path of a column leads to, as its type says.
fn custom_cell(custom: &CustomCell, sort: &str, object: &Doc, now: Time) -> Doc {
    let Some(value) = custom.path.find(object).first().copied().cloned() else {
        return Doc::NULL;
    };
    match (sort, value.kind()) {
        ("integer", Kind::Float(number)) => Doc::from(number as i64),
        ("integer", Kind::Int(_) | Kind::UInt(_))
        | ("number", Kind::Int(_) | Kind::UInt(_) | Kind::Float(_))
        | ("boolean", Kind::Bool(_))
        | ("string", Kind::Str(_)) => value,
        ("string", Kind::Null) => Doc::NULL,
        ("string", _) => value.to_string().into(),
        ("date", Kind::Str(_)) => cells::since(&value, now),
        _ => Doc::NULL,
    }
}
