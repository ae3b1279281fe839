//! The search: depth first, in a fixed order, until the first solution or the end.

use std::{fmt, time::Duration};

use windlass_core::Doc;

use super::{
    DEVICES_LIMIT,
    candidates::{Candidates, NO_VALUE, Use},
    device::DeviceId,
    error::AllocateError,
    inventory::Inventory,
    plan::{Alternative, Amount, ClaimPlan, Plan, RequestPlan, Rule},
    pools::{Pool, PoolState},
    refusal::Refusal,
    result,
};

/// How many steps are taken between two looks at the clock.
const STEPS_PER_LOOK: u32 = 64;

/// Whether a claim has a device, other than for an administrator.
pub type InUse<'a> = &'a dyn Fn(&DeviceId) -> bool;

/// When a search must end.
pub struct Deadline<'a> {
    elapsed: &'a dyn Fn() -> Duration,
    at: Option<Duration>,
}

impl<'a> Deadline<'a> {
    /// No deadline.
    #[must_use]
    pub fn never() -> Self {
        Self {
            elapsed: &|| Duration::ZERO,
            at: None,
        }
    }

    /// After this much time on a clock; a limit of zero is none.
    #[must_use]
    pub fn after(limit: Duration, elapsed: &'a dyn Fn() -> Duration) -> Self {
        let at = (!limit.is_zero()).then(|| elapsed().saturating_add(limit));
        Self { elapsed, at }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at.is_some_and(|at| (self.elapsed)() >= at)
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deadline({:?})", self.at)
    }
}

/// What became of the claims of a pod on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An allocation for each claim, and how good the choices were: for each list of
    /// alternatives, the earlier the better.
    Fits {
        /// What is written into `status.allocation`, in the order of the claims.
        allocations: Vec<Doc>,
        /// The sum over all lists of eight minus the position of what was chosen.
        score: i64,
    },
    /// The claims cannot be met here. [`Plan::explain`] says why.
    Refused,
}

/// A device that was chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) request: usize,
    pub(super) alternative: usize,
    pub(super) device: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Found,
    Nothing,
    /// The claim would have too many devices.
    TooBig,
}

impl Plan {
    /// Finds devices for all claims on a node.
    ///
    /// # Errors
    /// When something about the claims or slices is wrong, or the time is up.
    pub fn allocate(
        &self,
        inventory: &Inventory,
        in_use: InUse<'_>,
        node: &Doc,
        deadline: &Deadline<'_>,
    ) -> Result<Outcome, AllocateError> {
        let pools = inventory.pools_of(node)?;
        if self.is_hopeless(&pools, in_use) {
            return Ok(Outcome::Refused);
        }
        let candidates = Candidates::new(self, &pools, in_use, deadline);
        let candidates = candidates.ok_or(AllocateError::TimedOut)?;
        let mut search = Search::new(self, &candidates, deadline);
        search.check(&pools)?;
        if search.request(0, 0)? == Step::Found {
            let (score, chosen) = (search.score(), search.chosen);
            let allocations = result::allocations(self, &candidates, &chosen, node)?;
            return Ok(Outcome::Fits { allocations, score });
        }
        if pools
            .iter()
            .any(|pool| matches!(pool.state, PoolState::Invalid(_)))
        {
            return Err(AllocateError::InvalidPools);
        }
        Ok(Outcome::Refused)
    }

    /// Why the claims cannot be met on a node.
    ///
    /// # Errors
    /// When the selector of a slice cannot be understood.
    pub fn explain(
        &self,
        inventory: &Inventory,
        in_use: InUse<'_>,
        node: &Doc,
    ) -> Result<Refusal, AllocateError> {
        let pools = inventory.pools_of(node)?;
        let candidates = Candidates::new(self, &pools, in_use, &Deadline::never());
        let candidates = candidates.ok_or(AllocateError::TimedOut)?;
        Ok(Refusal::new(self, &candidates, &pools, node))
    }

    /// Whether every device is in use, and the claims begin with a request for one that is not.
    /// Most nodes of a busy cluster are like that, and no selector needs to be asked.
    fn is_hopeless(&self, pools: &[Pool], in_use: InUse<'_>) -> bool {
        let is_valid = |pool: &Pool| !matches!(pool.state, PoolState::Invalid(_));
        let complete = pools
            .iter()
            .filter(|pool| pool.state == PoolState::Complete);
        let mut devices = complete
            .flat_map(|pool| &pool.slices)
            .flat_map(|slice| &slice.devices);
        self.needs_free_device
            && pools.iter().all(is_valid)
            && devices.all(|device| in_use(&device.id))
    }
}

struct Search<'a> {
    plan: &'a Plan,
    candidates: &'a Candidates<'a>,
    deadline: &'a Deadline<'a>,
    steps: u32,
    /// The devices that requests for all of them mean, by alternative.
    all: Vec<Vec<usize>>,
    /// What was chosen, by claim.
    chosen: Vec<Vec<Chosen>>,
    /// By device: how many claims have chosen it.
    takers: Vec<u32>,
    /// By constraint: the values of the devices that were chosen.
    fixed: Vec<Vec<u32>>,
    /// By constraint: how many devices it is about, at least.
    needed: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(plan: &'a Plan, candidates: &'a Candidates<'a>, deadline: &'a Deadline<'a>) -> Self {
        let all = plan.alternatives().map(|alternative| {
            let uses = &candidates.uses[alternative.id];
            match alternative.amount {
                Amount::All => uses.matching().collect(),
                Amount::Exactly(_) => Vec::new(),
            }
        });
        let mut search = Self {
            plan,
            candidates,
            deadline,
            steps: 0,
            all: all.collect(),
            chosen: vec![Vec::new(); plan.claims.len()],
            takers: vec![0; candidates.devices.len()],
            fixed: vec![Vec::new(); plan.constraints.len()],
            needed: Vec::new(),
        };
        search.needed = (0..plan.constraints.len())
            .map(|constraint| search.needed_by(constraint))
            .collect();
        search
    }

    /// Looks for what makes the claims impossible or unclear before the search.
    fn check(&self, pools: &[Pool]) -> Result<(), AllocateError> {
        for claim in &self.plan.claims {
            for alternative in claim
                .requests
                .iter()
                .flat_map(|request| &request.alternatives)
            {
                self.check_all(claim, alternative, pools)?;
            }
            let least = |request: &RequestPlan| {
                let needs = request.alternatives.iter().map(|one| self.need(one));
                needs.min().unwrap_or(0)
            };
            let count = claim
                .requests
                .iter()
                .map(least)
                .fold(0, usize::saturating_add);
            if count > DEVICES_LIMIT {
                return Err(AllocateError::Invalid(format!(
                    "claim {}: number of requested devices {count} exceeds the claim limit of \
                     {DEVICES_LIMIT}",
                    claim.key
                )));
            }
        }
        Ok(())
    }

    /// A request for all devices needs to know all devices.
    fn check_all(
        &self,
        claim: &ClaimPlan,
        alternative: &Alternative,
        pools: &[Pool],
    ) -> Result<(), AllocateError> {
        if alternative.amount != Amount::All {
            return Ok(());
        }
        let fail = |text: String| {
            let (key, name) = (&claim.key, &alternative.name);
            Err(AllocateError::Invalid(format!(
                "claim {key}, request {name}: {text}"
            )))
        };
        for pool in pools {
            let (driver, name) = (&pool.driver, &pool.name);
            let state = match pool.state {
                PoolState::Complete => continue,
                PoolState::Incomplete => "being updated",
                PoolState::Invalid(_) => "invalid",
            };
            return fail(format!(
                "asks for all devices, but resource pool {driver}/{name} is currently {state}"
            ));
        }
        match self.candidates.uses[alternative.id].failures.first() {
            Some(text) => Err(AllocateError::Invalid(text.clone())),
            None => Ok(()),
        }
    }

    fn need(&self, alternative: &Alternative) -> usize {
        match alternative.amount {
            Amount::Exactly(count) => count,
            Amount::All => self.all[alternative.id].len(),
        }
    }

    /// How many devices a constraint is about, whatever is chosen.
    fn needed_by(&self, constraint: usize) -> usize {
        let claim = &self.plan.claims[self.plan.constraints[constraint].claim];
        let least = |request: &RequestPlan| {
            let needs = request.alternatives.iter();
            let needs = needs.map(|one| match one.constraints.contains(&constraint) {
                true => self.need(one),
                false => 0,
            });
            needs.min().unwrap_or(0)
        };
        claim
            .requests
            .iter()
            .map(least)
            .fold(0, usize::saturating_add)
    }

    fn tick(&mut self) -> Result<(), AllocateError> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps % STEPS_PER_LOOK == 1 && self.deadline.is_over() {
            return Err(AllocateError::TimedOut);
        }
        Ok(())
    }

    /// Meets a request and all that follow.
    fn request(&mut self, claim: usize, request: usize) -> Result<Step, AllocateError> {
        let Some(plan) = self.plan.claims.get(claim) else {
            return Ok(Step::Found);
        };
        let Some(asked) = plan.requests.get(request) else {
            let rest = self.request(claim + 1, 0)?;
            return Ok(if rest == Step::TooBig {
                Step::Nothing
            } else {
                rest
            });
        };
        let mut is_too_big = true;
        for (at, alternative) in asked.alternatives.iter().enumerate() {
            let chosen = Chosen {
                request,
                alternative: at,
                device: 0,
            };
            match self.devices(claim, alternative, chosen, 0, 0)? {
                Step::Found => return Ok(Step::Found),
                Step::TooBig => {}
                Step::Nothing => is_too_big = false,
            }
        }
        Ok(if is_too_big {
            Step::TooBig
        } else {
            Step::Nothing
        })
    }

    /// Chooses the remaining devices of an alternative, from a device on, and meets the rest.
    fn devices(
        &mut self,
        claim: usize,
        alternative: &'a Alternative,
        choice: Chosen,
        count: usize,
        start: usize,
    ) -> Result<Step, AllocateError> {
        self.tick()?;
        let need = self.need(alternative);
        if alternative.amount == Amount::All && need == 0 {
            return Ok(Step::Nothing);
        }
        if count == need {
            return self.request(claim, choice.request + 1);
        }
        if self.chosen[claim].len().saturating_add(need - count) > DEVICES_LIMIT {
            return Ok(Step::TooBig);
        }
        if alternative.amount == Amount::All {
            return self.next_of_all(claim, alternative, choice, count);
        }
        let (candidates, uses) = (self.candidates, &self.candidates.uses[alternative.id]);
        let list = self.worth_trying(alternative);
        let list = &list[list.partition_point(|device| (*device as usize) < start)..];
        if list.len() < need - count && uses.failures.is_empty() {
            return Ok(Step::Nothing);
        }
        let mut tried = vec![false; candidates.alike_count];
        for device in list.iter().map(|device| *device as usize) {
            let is_taken = self.is_taken(claim, alternative, device);
            match uses.of[device] {
                Use::Failed(text) => return Err(failed(&uses.failures, text)),
                Use::Free if !is_taken => {}
                _ => continue,
            }
            // What somebody else has taken is not like what nobody has.
            if self.takers[device] == 0 {
                if tried[candidates.alike[device] as usize] {
                    continue;
                }
                tried[candidates.alike[device] as usize] = true;
            }
            if !self.take(claim, alternative, Chosen { device, ..choice }) {
                continue;
            }
            let rest = self.devices(claim, alternative, choice, count + 1, device + 1)?;
            if rest != Step::Nothing {
                if rest == Step::TooBig {
                    self.give_back(claim, alternative);
                }
                return Ok(rest);
            }
            self.give_back(claim, alternative);
        }
        Ok(Step::Nothing)
    }

    /// A request for all devices leaves no choice.
    fn next_of_all(
        &mut self,
        claim: usize,
        alternative: &'a Alternative,
        choice: Chosen,
        count: usize,
    ) -> Result<Step, AllocateError> {
        let device = self.all[alternative.id][count];
        let one = self.candidates.uses[alternative.id].of[device];
        if one != Use::Free || self.is_taken(claim, alternative, device) {
            return Ok(Step::Nothing);
        }
        if !self.take(claim, alternative, Chosen { device, ..choice }) {
            let (key, name) = (&self.plan.claims[claim].key, &alternative.name);
            let id = &self.candidates.devices[device].0.id;
            return Err(AllocateError::Invalid(format!(
                "claim {key}, request {name}: cannot add device {id} because a claim constraint \
                 would not be satisfied"
            )));
        }
        let rest = self.devices(claim, alternative, choice, count + 1, device + 1)?;
        if rest != Step::Found {
            self.give_back(claim, alternative);
        }
        Ok(rest)
    }

    /// The devices that an alternative can take: only those of the value that is fixed, if one is.
    fn worth_trying(&self, alternative: &Alternative) -> &'a [u32] {
        let uses = &self.candidates.uses[alternative.id];
        let fixed = alternative.constraints.iter().filter_map(|constraint| {
            let rule = self.plan.constraints[*constraint].rule;
            let value = self.fixed[*constraint]
                .first()
                .filter(|_| rule == Rule::Match)?;
            let values = &self.candidates.values[*constraint];
            Some(values.by_value[*value as usize].as_slice())
        });
        match fixed.min_by_key(|list| list.len()) {
            // A device whose selector fails must fail the search, whatever its value.
            Some(list) if uses.failures.is_empty() => list,
            _ => &uses.list,
        }
    }

    /// Whether a device was chosen before, so that this alternative cannot have it. Administrators
    /// share devices with everybody, but no claim gets one twice.
    fn is_taken(&self, claim: usize, alternative: &Alternative, device: usize) -> bool {
        if !alternative.is_admin {
            return self.takers[device] > 0;
        }
        let mut chosen = self.chosen[claim].iter();
        self.takers[device] > 0 && chosen.any(|chosen| chosen.device == device)
    }

    /// Takes a device, unless a constraint is against it.
    fn take(&mut self, claim: usize, alternative: &Alternative, chosen: Chosen) -> bool {
        let agrees = |constraint: &usize| self.agrees(*constraint, chosen.device);
        if !alternative.constraints.iter().all(agrees) {
            return false;
        }
        for constraint in &alternative.constraints {
            let value = self.candidates.values[*constraint].of[chosen.device];
            self.fixed[*constraint].push(value);
        }
        self.takers[chosen.device] += 1;
        self.chosen[claim].push(chosen);
        true
    }

    fn agrees(&self, constraint: usize, device: usize) -> bool {
        let values = &self.candidates.values[constraint];
        let (value, fixed) = (values.of[device], &self.fixed[constraint]);
        if value == NO_VALUE {
            return false;
        }
        match (self.plan.constraints[constraint].rule, fixed.first()) {
            (Rule::Match, Some(first)) => *first == value,
            (Rule::Match, None) => {
                values.by_value[value as usize].len() >= self.needed[constraint]
                    || self.is_all(constraint)
            }
            (Rule::Distinct, _) => !fixed.contains(&value),
        }
    }

    /// Whether a constraint is about a request for all devices, which must be refused in words.
    fn is_all(&self, constraint: usize) -> bool {
        let mut about = self.plan.alternatives();
        about.any(|one| one.amount == Amount::All && one.constraints.contains(&constraint))
    }

    fn give_back(&mut self, claim: usize, alternative: &Alternative) {
        let chosen = self.chosen[claim].pop();
        let chosen = chosen.expect("invariant: only what was taken is given back");
        self.takers[chosen.device] -= 1;
        for constraint in &alternative.constraints {
            self.fixed[*constraint].pop();
        }
    }

    /// How good the choices were.
    fn score(&self) -> i64 {
        let claims = self.plan.claims.iter().zip(&self.chosen);
        let mut score = 0;
        for (claim, chosen) in claims {
            for (at, request) in claim.requests.iter().enumerate() {
                let mut of_request = chosen.iter().filter(|chosen| chosen.request == at);
                if let Some(chosen) = of_request.next().filter(|_| request.is_choice) {
                    score += result::choice_score(chosen.alternative);
                }
            }
        }
        score
    }
}

fn failed(failures: &[String], text: u32) -> AllocateError {
    let text = failures.get(text as usize).cloned();
    AllocateError::Invalid(text.unwrap_or_default())
}
