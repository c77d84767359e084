//! Guests that come and go, so that something is there to be emptied.

use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::plan::GuestOwner;
use rand::seq::IndexedRandom;

use super::background_load::Talker;
use super::state::{Event, Host, Rules, State, is_of};
use super::timing::{Between, later};
use crate::site::Site;

/// After an interruption, so much of what would have happened meanwhile is made up for.
const CATCHES_UP: SignedDuration = SignedDuration::from_hours(1);

impl State {
    /// Sees to it that all who are to start guests do.
    pub(super) fn begin_background_load(&mut self, rules: &Rules, now: Timestamp) {
        for talker in [Talker::Preemptibles, Talker::Projects, Talker::Others] {
            if rules.background_load.every(talker).is_some() && !self.talks(talker) {
                self.schedule_talk(rules, talker, now);
            }
        }
    }

    /// The next time, about the usual time from then.
    fn schedule_talk(&mut self, rules: &Rules, talker: Talker, from: Timestamp) {
        // Not more often than every millisecond, or no time would ever pass.
        let usual =
            rules.background_load.every(talker).map(|every| every.max(SignedDuration::from_millis(2)));
        if let Some(usual) = usual {
            let pause = Between { least: usual / 2, most: usual + usual / 2 }.draw(&mut self.draw());
            self.schedule(later(from, pause), Event::BackgroundLoad(talker));
        }
    }

    /// Somebody starts a guest if there is a place for it, and will be back.
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

/// Whose guests would be started there.
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
