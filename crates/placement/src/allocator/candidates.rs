//! The devices of a node, and what each alternative may do with them.

use std::{collections::HashMap, sync::Arc};

use windlass_core::Doc;

use super::{
    device::{Device, Slice},
    plan::{Alternative, Amount, Constraint, Plan},
    pools::{Pool, PoolState},
    search::{Deadline, InUse},
    selectors::{DeviceView, Match},
};

/// The value of a constraint that a device does not have.
pub(super) const NO_VALUE: u32 = u32::MAX;

/// The devices of a node, in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    pub(super) devices: Vec<(&'a Device, &'a Slice)>,
    /// What each alternative may do with each device.
    pub(super) uses: Vec<Uses>,
    /// The value of each constraint for each device.
    pub(super) values: Vec<Values>,
    /// Devices that nothing tells apart have the same number.
    pub(super) alike: Vec<u32>,
    pub(super) alike_count: usize,
}

/// What one alternative may do with the devices.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pub(super) of: Vec<Use>,
    /// The devices it can take, and those that it cannot be asked about.
    pub(super) list: Vec<u32>,
    /// The texts of failed selectors.
    pub(super) failures: Vec<String>,
}

/// What an alternative may do with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    Free,
    Taken,
    Unmatched,
    Tainted,
    Unsupported,
    /// A selector failed, with this text.
    Failed(u32),
}

/// The values of a constraint's attribute, numbered.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) of: Vec<u32>,
    /// The devices of each value.
    pub(super) by_value: Vec<Vec<u32>>,
}

impl<'a> Candidates<'a> {
    /// `None` if the time is up before every selector was asked about every device.
    pub(super) fn new(
        plan: &Plan,
        pools: &'a [Pool],
        in_use: InUse<'_>,
        deadline: &Deadline<'_>,
    ) -> Option<Self> {
        let complete = pools
            .iter()
            .filter(|pool| pool.state == PoolState::Complete);
        let slices: Vec<&'a Arc<Slice>> = complete.flat_map(|pool| &pool.slices).collect();
        let of_slice = |slice: &'a Arc<Slice>| {
            let devices = slice.devices.iter();
            devices.map(move |device| (device, &**slice))
        };
        let devices: Vec<(&Device, &Slice)> = slices.iter().copied().flat_map(of_slice).collect();
        let in_use: Vec<bool> = devices
            .iter()
            .map(|(device, _)| in_use(&device.id))
            .collect();
        let uses = plan
            .alternatives()
            .map(|alternative| Uses::new(alternative, &slices, &in_use, deadline))
            .collect::<Option<_>>()?;
        let values = plan
            .constraints
            .iter()
            .map(|constraint| Values::new(constraint, &devices))
            .collect();
        let mut candidates = Self {
            devices,
            uses,
            values,
            alike: Vec::new(),
            alike_count: 0,
        };
        candidates.compare();
        Some(candidates)
    }

    /// Numbers the devices so that those which nothing tells apart have the same number.
    fn compare(&mut self) {
        let mut numbers: HashMap<Vec<u64>, u32> = HashMap::new();
        for at in 0..self.devices.len() {
            let uses = self.uses.iter().map(|uses| uses.of[at].number());
            let values = self.values.iter().map(|values| u64::from(values.of[at]));
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(uses.chain(values).collect()).or_insert(next);
            self.alike.push(number);
        }
        self.alike_count = numbers.len();
    }
}

impl Uses {
    fn new(
        alternative: &Alternative,
        slices: &[&Arc<Slice>],
        in_use: &[bool],
        deadline: &Deadline<'_>,
    ) -> Option<Self> {
        let mut uses = Self {
            of: Vec::with_capacity(in_use.len()),
            ..Self::default()
        };
        for slice in slices {
            let answers: Vec<Arc<[Match]>> = alternative
                .tests
                .iter()
                .map(|test| {
                    slice.answers(test.program.id, |device| {
                        let view = DeviceView {
                            driver: &device.id.driver,
                            device: &device.doc,
                        };
                        (!deadline.is_over()).then(|| test.program.ask(&view))
                    })
                })
                .collect::<Option<_>>()?;
            for (at, device) in slice.devices.iter().enumerate() {
                let is_in_use = in_use[uses.of.len()];
                let one = uses.judge(alternative, device, &answers, at, is_in_use);
                if matches!(one, Use::Free | Use::Failed(_)) {
                    uses.list
                        .push(u32::try_from(uses.of.len()).unwrap_or(u32::MAX));
                }
                uses.of.push(one);
            }
        }
        Some(uses)
    }

    /// Looks at a device in upstream's order, so that the same selector fails first.
    fn judge(
        &mut self,
        alternative: &Alternative,
        device: &Device,
        answers: &[Arc<[Match]>],
        at: usize,
        is_in_use: bool,
    ) -> Use {
        let is_all = alternative.amount == Amount::All;
        let is_blocked = is_in_use && !alternative.is_admin;
        if is_blocked && !is_all {
            return Use::Taken;
        }
        if device.is_unsupported {
            return Use::Unsupported;
        }
        for (test, answers) in alternative.tests.iter().zip(answers) {
            match &answers[at] {
                Match::Yes => {}
                Match::No => return Use::Unmatched,
                Match::Failed(error) => {
                    let text = format!("{}: CEL runtime error: {error}", test.origin);
                    return Use::Failed(self.failure(text));
                }
            }
        }
        if is_blocked {
            return Use::Taken;
        }
        match is_tolerated(&device.doc, &alternative.tolerations) {
            true => Use::Free,
            false => Use::Tainted,
        }
    }

    fn failure(&mut self, text: String) -> u32 {
        let known = self.failures.iter().position(|known| *known == text);
        let at = known.unwrap_or_else(|| {
            self.failures.push(text);
            self.failures.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// How many devices are of a kind.
    pub(super) fn count(&self, kind: fn(&Use) -> bool) -> usize {
        self.of.iter().filter(|one| kind(one)).count()
    }

    /// The devices that match, used or not. A request for all devices means these.
    pub(super) fn matching(&self) -> impl Iterator<Item = usize> {
        let all = self.of.iter().enumerate();
        let all = all.filter(|(_, one)| matches!(one, Use::Free | Use::Taken | Use::Tainted));
        all.map(|(at, _)| at)
    }
}

impl Use {
    fn number(self) -> u64 {
        match self {
            Self::Free => 0,
            Self::Taken => 1,
            Self::Unmatched => 2,
            Self::Tainted => 3,
            Self::Unsupported => 4,
            Self::Failed(text) => 5 + u64::from(text),
        }
    }
}

impl Values {
    fn new(constraint: &Constraint, devices: &[(&Device, &Slice)]) -> Self {
        let mut numbers: HashMap<&Doc, u32> = HashMap::new();
        let mut values = Self::default();
        for (at, (device, _)) in devices.iter().enumerate() {
            let Some(value) = constraint.value(&device.id.driver, &device.doc) else {
                values.of.push(NO_VALUE);
                continue;
            };
            let next = u32::try_from(numbers.len()).unwrap_or(NO_VALUE);
            let number = *numbers.entry(value).or_insert(next);
            if number == next {
                values.by_value.push(Vec::new());
            }
            values.of.push(number);
            values.by_value[number as usize].push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        values
    }
}

/// Whether every taint that keeps new users away is tolerated.
fn is_tolerated(device: &Doc, tolerations: &Doc) -> bool {
    let taints = device.at("/taints").items().iter();
    let mut hard =
        taints.filter(|taint| matches!(taint.str_at("/effect"), "NoSchedule" | "NoExecute"));
    hard.all(|taint| tolerations.items().iter().any(|one| tolerates(one, taint)))
}

fn tolerates(toleration: &Doc, taint: &Doc) -> bool {
    let (effect, key) = (toleration.str_at("/effect"), toleration.str_at("/key"));
    (effect.is_empty() || effect == taint.str_at("/effect"))
        && (key.is_empty() || key == taint.str_at("/key"))
        && match toleration.str_at("/operator") {
            "Exists" => true,
            "" | "Equal" => toleration.str_at("/value") == taint.str_at("/value"),
            _ => false,
        }
}
