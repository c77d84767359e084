//! Starts guests of the background load, so that hosts aren't empty when a lease needs them.

use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::plan::GuestOwner;
use rand::seq::IndexedRandom;

use super::background_load::Talker;
use super::state::{Event, Host, Rules, State, is_of};
use super::timing::{Between, later};
use crate::site::Site;

/// Maximum duration of missed background load that is made up for after an interruption.
const CATCHES_UP: SignedDuration = SignedDuration::from_hours(1);

impl State {
    /// Schedules the first guest of each source that has none scheduled.
    pub(super) fn begin_background_load(&mut self, rules: &Rules, now: Timestamp) {
        for talker in [Talker::Preemptibles, Talker::Projects, Talker::Others] {
            if rules.background_load.every(talker).is_some() && !self.talks(talker) {
                self.schedule_talk(rules, talker, now);
            }
        }
    }

    /// Schedules the next guest at about the usual interval after `from`: 50 to 150 percent.
    fn schedule_talk(&mut self, rules: &Rules, talker: Talker, from: Timestamp) {
        // The pause is at least 1 ms, or time would never pass.
        let usual =
            rules.background_load.every(talker).map(|every| every.max(SignedDuration::from_millis(2)));
        if let Some(usual) = usual {
            let pause = Between { least: usual / 2, most: usual + usual / 2 }.draw(&mut self.draw());
            self.schedule(later(from, pause), Event::BackgroundLoad(talker));
        }
    }

    /// Starts a guest on a random host that accepts one, if any, and schedules the next.
    pub(super) fn talk(&mut self, rules: &Rules, talker: Talker, at: Timestamp, now: Timestamp) {
        let background_load = rules.background_load;
        let runs_for = match talker {
            Talker::Preemptibles => background_load.preemptible_runs_for,
            Talker::Projects => background_load.project_runs_for,
            Talker::Others => background_load.others_run_for,
        };
        let places: Vec<(HostId, GuestOwner)> = self
            .hosts
            .iter()
            .filter(|(_, host)| host.crowd() < background_load.most_per_host)
            .flat_map(|(id, host)| wishes(talker, host).into_iter().map(move |owner| (*id, owner)))
            .filter(|(id, owner)| self.hosts[id].admits(*owner))
            .collect();
        if let Some((host, owner)) = places.choose(&mut self.draw()).copied() {
            let runs_for = runs_for.draw(&mut self.draw());
            self.start(rules, host, owner, Some(runs_for), at);
        }
        let earliest = now.checked_sub(CATCHES_UP).unwrap_or(Timestamp::MIN);
        self.schedule_talk(rules, talker, at.max(earliest));
    }
}

/// Owners of guests that the source would start on the host.
fn wishes(talker: Talker, host: &Host) -> Vec<GuestOwner> {
    match (talker, host.site) {
        (Talker::Preemptibles, _) => vec![GuestOwner::Preemptible],
        (Talker::Others, Site::FreePool) => vec![GuestOwner::Other],
        (Talker::Others, _) => Vec::new(),
        (Talker::Projects, Site::Held { lease, .. }) => lease.map(GuestOwner::Lease).into_iter().collect(),
        (Talker::Projects, _) => {
            let room = host.slots.values().filter(|slots| {
                let used = host.guests.values().filter(|guest| is_of(guest.owner, slots.lease)).count();
                used < slots.count as usize
            });
            room.filter_map(|slots| slots.lease.map(GuestOwner::Lease)).collect()
        }
    }
}
