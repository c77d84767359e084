//! The promises that every store keeps, one function each. A function panics if its promise is broken, so
//! call them from tests:
//!
//! ```ignore
//! macro_rules! tests {
//!     ($($promise:ident)*) => { $(
//!         #[tokio::test(flavor = "multi_thread")]
//!         async fn $promise() {
//!             store::conformance::$promise(&empty_store().await).await;
//!         }
//!     )* };
//! }
//! store::promises!(tests);
//! ```
//!
//! Persistent stores also test [`what_was_committed_survives`], which needs a function that reopens the
//! store, and the promises about long text that inspect rows of the database. Stores whose bookings aren't
//! shared with other processes need no other tests.

#![expect(clippy::missing_panics_doc, reason = "panicking is how a broken promise is told")]
#![allow(clippy::wildcard_imports, reason = "samples are named as the domain names things")]

mod archives;
mod bookings;
mod changes;
mod documents;
mod forgetting;
mod journals;
mod occupancy;
mod power;
mod races;
mod random;
mod records;
mod refusals;
pub mod sample;
mod steps;
mod texts;
mod tokens;
mod usage;

use std::sync::Arc;

pub use archives::*;
pub use bookings::*;
pub use changes::*;
pub use documents::*;
pub use forgetting::*;
pub use journals::*;
pub use occupancy::*;
pub use power::*;
pub use races::*;
pub use random::*;
pub use records::*;
pub use refusals::*;
pub use steps::*;
pub use texts::*;
pub use tokens::*;
pub use usage::*;

use crate::Store;

/// Calls a macro with the names of all promises.
#[macro_export]
macro_rules! promises {
    ($then:ident) => {
        $then! {
            a_new_store_is_empty
            everything_is_loaded_as_it_was_committed
            plain_records_are_entered_replaced_and_removed
            free_pools_are_written_by_their_versions
            a_free_pool_stays_while_hosts_are_in_it
            instances_are_written_by_their_versions
            a_change_of_another_version_is_refused_and_changes_nothing
            names_and_addresses_are_unique
            what_is_gone_cannot_be_removed_again
            a_repeated_request_is_refused_for_a_day
            notifications_are_numbered_in_the_order_of_commits
            notifications_of_a_project_are_read_without_those_of_others
            notifications_are_kept_until_every_listener_was_told
            what_is_old_is_forgotten_a_part_at_a_time
            notifications_that_nobody_takes_are_forgotten_in_the_end
            leases_that_are_over_are_forgotten_and_their_usage_is_not
            records_are_counted
            a_project_that_has_too_many_records_loses_its_own
            protected_audit_records_expire_by_age_only
            what_is_too_much_is_forgotten_a_part_at_a_time
            notifications_that_a_listener_misses_are_counted
            shares_of_projects_are_those_of_their_records
            of_parallel_writers_of_journals_all_are_counted
            the_audit_log_shows_the_last_first
            the_audit_log_is_searched_page_by_page
            w1_a_host_is_in_one_lease_at_a_time
            w16_a_lease_may_start_when_another_ends
            w2_slots_fit_their_host_at_every_instant
            w2_slots_count_to_their_end_whatever_their_length
            w16_a_long_lease_of_a_host_excludes_slots_until_its_end
            w16_slots_and_whole_hosts_exclude_each_other_only_while_they_overlap
            an_address_is_in_one_lease_at_a_time
            a_lease_cannot_have_a_host_twice
            a_lease_that_is_over_keeps_nothing
            w9_a_refused_change_of_a_lease_changes_nothing
            a_lease_can_always_be_shortened
            what_is_not_taken_need_not_fit
            hosts_change_hands_within_one_commit
            a_host_comes_and_goes_with_its_lease
            what_is_reserved_cannot_be_removed
            what_does_not_exist_cannot_be_booked
            what_is_offered_is_kept_free_until_it_becomes_a_lease
            w1_of_parallel_bookings_of_a_host_one_stands
            w2_of_parallel_bookings_of_slots_as_many_stand_as_fit
            of_parallel_changes_of_a_lease_one_stands
            of_parallel_claims_of_a_step_one_stands
            a_commit_that_is_broken_off_happens_whole_or_not_at_all
            a_claim_excludes_others_until_it_is_over
            a_step_is_finished_once_and_under_the_last_claim
            a_claim_is_renewed_until_it_is_lost
            released_claims_can_be_taken_by_others
            claims_that_their_holder_knows_of_are_not_released
            failures_are_counted_until_a_success
            steps_are_finished_together
            every_commit_makes_the_next_revision
            changes_bring_an_old_snapshot_up_to_date
            the_history_of_steps_is_followed_like_records
            who_knows_another_history_is_told_to_load_everything
            who_waits_for_a_change_is_woken
            of_parallel_commits_a_follower_misses_none
            one_holder_leads_in_a_role_at_a_time
            what_was_exported_can_be_imported
            a_store_with_something_in_it_imports_nothing
            an_archive_that_contradicts_itself_is_imported_not_at_all
            usage_a_events_are_read_as_they_were_written
            usage_c_a_refused_commit_leaves_no_usage
            usage_d_sums_do_not_overflow
            usage_e_is_summed_as_the_model_sums_it
            occupancy_is_read_as_it_was_recorded
            occupancy_is_opened_and_closed_once
            occupancy_expires_by_age_and_by_size
            energy_f_times_that_hosts_were_off_for_are_kept
            energy_f_a_refused_commit_leaves_no_time
            refusals_are_summed_by_shortage_over_days_and_projects
            refusals_of_the_kinds_refused_most_are_read
            a_project_with_too_many_refusals_loses_its_oldest
            old_refusals_are_forgotten_with_usage
            of_parallel_writers_of_refusals_all_are_counted
            of_parallel_keys_of_one_number_one_stands
            revocations_are_kept_until_their_tokens_end
            text_of_any_length_is_read_as_it_was_written
            leases_keep_their_text_while_others_change_theirs
            of_parallel_leases_with_the_same_text_each_has_it
            random_commits_are_answered_as_the_model_answers_them
        }
    };
}

macro_rules! all {
    ($($promise:ident)*) => {
        /// Holds a store to all promises; `make` makes an empty one each time.
        pub async fn all(make: impl AsyncFn() -> Arc<dyn Store>) {
            $( $promise(&make().await).await; )*
        }
    };
}
promises!(all);
