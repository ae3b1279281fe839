//! The configuration: flow schemas in the order in which they are asked, and priority levels, read
//! from the stored objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use windlass_core::Doc;

use super::level::{Level, LevelKind, Queuing, SeatExchange, SeatLimits};
use super::memo::SubjectMemo;
use super::schema::{Distinguisher, FlowRule, Schema};
use super::stats::FlowStats;
use crate::request::Target;
use windlass_access::User;

/// Seats of all levels together: upstream's 400 reads and 200 writes at a time.
pub(super) const SEATS_TOTAL: usize = 600;
/// Queues of one level, however many are configured.
const QUEUES_LIMIT: usize = 1024;
/// Queues of one flow.
const HAND_LIMIT: usize = 32;
/// The schema, and the level, of requests that no other schema is about.
pub(super) const CATCH_ALL: &str = "catch-all";
/// The level whose requests never wait.
const EXEMPT: &str = "exempt";

/// One state of the configuration.
#[derive(Debug)]
pub(super) struct FlowConfig {
    /// By precedence.
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) levels: BTreeMap<String, Arc<Level>>,
    catch_all: Arc<Schema>,
    memo: SubjectMemo,
    exchange: Arc<SeatExchange>,
}

/// The stored objects.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowObjects {
    pub(super) schemas: Vec<Doc>,
    pub(super) levels: Vec<Doc>,
}

impl FlowObjects {
    /// Those that exist from the first start.
    pub(super) fn built_in() -> Self {
        let (schemas, levels) = crate::first_flow::flow_objects();
        Self { schemas, levels }
    }

    /// With the two that no server is without, should they be deleted.
    fn with_mandatory(mut self) -> Self {
        let built_in = Self::built_in();
        let is_mandatory = |doc: &&Doc| matches!(doc.meta().name(), EXEMPT | CATCH_ALL);
        for (known, all) in [
            (&mut self.schemas, &built_in.schemas),
            (&mut self.levels, &built_in.levels),
        ] {
            for doc in all.iter().filter(is_mandatory) {
                if !known
                    .iter()
                    .any(|known| known.meta().name() == doc.meta().name())
                {
                    known.push(doc.clone());
                }
            }
        }
        self
    }
}

impl FlowConfig {
    /// Reads the objects. Levels and figures of the state before go on where they still fit.
    pub(super) fn read(objects: FlowObjects, before: Option<&Self>) -> Self {
        let objects = objects.with_mandatory();
        let exchange = before.map_or_else(Arc::default, |before| Arc::clone(&before.exchange));
        let levels = read_levels(&objects.levels, before, &exchange);
        let known = before.map_or(&[][..], |before| &before.schemas);
        let mut schemas: Vec<Arc<Schema>> = objects
            .schemas
            .iter()
            .filter_map(|doc| read_schema(doc, &levels, known))
            .map(Arc::new)
            .collect();
        schemas.sort_by(|a, b| (a.precedence, &a.name).cmp(&(b.precedence, &b.name)));
        let catch_all = schemas
            .iter()
            .find(|schema| schema.name == CATCH_ALL)
            .cloned()
            .unwrap_or_else(|| last_resort(&levels, &exchange));
        Self {
            schemas,
            levels,
            catch_all,
            memo: SubjectMemo::default(),
            exchange,
        }
    }

    /// The schema of a request.
    pub(super) fn classify(&self, user: &User, target: &Target) -> &Arc<Schema> {
        let found = match self.memo.candidates(user, &self.schemas) {
            Some(candidates) => candidates.find(&self.schemas, target),
            None => {
                let mut schemas = self.schemas.iter();
                schemas.find(|schema| schema.matches(user, target))
            }
        };
        found.unwrap_or(&self.catch_all)
    }
}

/// A schema for everything, if the stored one names no level.
fn last_resort(levels: &BTreeMap<String, Arc<Level>>, exchange: &Arc<SeatExchange>) -> Arc<Schema> {
    let uid = HeaderValue::from_static("");
    let level = levels.get(CATCH_ALL).cloned().unwrap_or_else(|| {
        let level = Level::new(CATCH_ALL, uid.clone(), LevelKind::Limited(None), exchange);
        level.set_limits(SeatLimits {
            nominal: SEATS_TOTAL,
            ..SeatLimits::default()
        });
        level
    });
    Arc::new(Schema {
        name: CATCH_ALL.to_owned(),
        uid,
        precedence: i64::MAX,
        level,
        distinguisher: Distinguisher::User,
        stats: Arc::default(),
        rules: Vec::new(),
    })
}

/// The uid of an object as the value of a header.
fn uid(doc: &Doc) -> HeaderValue {
    HeaderValue::from_str(doc.meta().uid_str()).unwrap_or(HeaderValue::from_static(""))
}

/// A flow schema; `None` if its level does not exist.
fn read_schema(
    doc: &Doc,
    levels: &BTreeMap<String, Arc<Level>>,
    known: &[Arc<Schema>],
) -> Option<Schema> {
    let spec = doc.at("/spec");
    let level = levels.get(spec.str_at("/priorityLevelConfiguration/name"))?;
    let name = doc.meta().name();
    let same = known
        .iter()
        .find(|schema| schema.name == name && schema.level.name == level.name);
    let stats = same.map_or_else(Arc::<FlowStats>::default, |same| Arc::clone(&same.stats));
    let rules = spec.at("/rules").items().iter().map(FlowRule::read);
    Some(Schema {
        name: name.to_owned(),
        uid: uid(doc),
        precedence: spec.at("/matchingPrecedence").as_i64().unwrap_or(1000),
        level: Arc::clone(level),
        distinguisher: Distinguisher::of(spec),
        stats,
        rules: rules.collect(),
    })
}

fn read_levels(
    docs: &[Doc],
    before: Option<&FlowConfig>,
    exchange: &Arc<SeatExchange>,
) -> BTreeMap<String, Arc<Level>> {
    let all_shares: usize = docs.iter().map(shares).sum();
    let mut levels = BTreeMap::new();
    for doc in docs {
        let (name, uid, kind) = (doc.meta().name(), uid(doc), read_kind(doc));
        let same = before
            .and_then(|before| before.levels.get(name))
            .filter(|level| level.kind == kind && level.uid == uid);
        let level = match same {
            Some(level) => Arc::clone(level),
            None => Level::new(name, uid, kind, exchange),
        };
        level.set_limits(read_limits(doc, all_shares));
        levels.insert(name.to_owned(), level);
    }
    for (name, level) in before.into_iter().flat_map(|before| &before.levels) {
        let is_kept = levels
            .get(name)
            .is_some_and(|kept| Arc::ptr_eq(kept, level));
        if !is_kept {
            level.retire();
        }
    }
    levels
}

fn read_kind(doc: &Doc) -> LevelKind {
    if doc.str_at("/spec/type") == "Exempt" {
        return LevelKind::Exempt;
    }
    let response = doc.at("/spec/limited/limitResponse");
    if response.str_at("/type") != "Queue" {
        return LevelKind::Limited(None);
    }
    let number = |pointer: &str, default: usize| {
        let number = response.at(pointer).as_i64();
        number
            .and_then(|number| usize::try_from(number).ok())
            .unwrap_or(default)
            .max(1)
    };
    LevelKind::Limited(Some(Queuing {
        queues: number("/queuing/queues", 64).min(QUEUES_LIMIT),
        hand: number("/queuing/handSize", 8).min(HAND_LIMIT),
        length: number("/queuing/queueLengthLimit", 50),
    }))
}

/// The part of a level's specification that has its seats.
fn seats(doc: &Doc) -> &Doc {
    match doc.str_at("/spec/type") {
        "Exempt" => doc.at("/spec/exempt"),
        _ => doc.at("/spec/limited"),
    }
}

fn shares(doc: &Doc) -> usize {
    let default = if doc.str_at("/spec/type") == "Exempt" {
        0
    } else {
        30
    };
    let shares = seats(doc).at("/nominalConcurrencyShares").as_i64();
    shares
        .and_then(|shares| usize::try_from(shares).ok())
        .unwrap_or(default)
}

fn read_limits(doc: &Doc, all_shares: usize) -> SeatLimits {
    let nominal = (SEATS_TOTAL * shares(doc)).div_ceil(all_shares.max(1));
    let percent = |pointer: &str| {
        let percent = seats(doc).at(pointer).as_i64();
        percent.and_then(|percent| usize::try_from(percent).ok())
    };
    let part = |percent: usize| (nominal * percent + 50) / 100;
    SeatLimits {
        nominal,
        lendable: part(percent("/lendablePercent").unwrap_or(0).min(100)),
        borrowing: percent("/borrowingLimitPercent").map_or(SEATS_TOTAL, part),
    }
}
