//! Small workloads whose figures can be computed by hand.

use std::fmt::Write;

use fleet::simulated::{Between, Timing};

use super::*;

/// Two jobs: the first asks for the whole machine for an hour and runs for half an hour, the second asks for
/// most hosts for fifty minutes. Then two advance reservations at the same time, which don't both fit.
const SWF: &str = "1 0 0 1800 -1 -1 -1 144 3600 -1 1 -1 -1 -1 -1 -1 -1 -1\n\
                   2 60 0 3000 -1 -1 -1 100 3000 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
const LWF: &str = "0 7200 1800 1800 72 1 1024 0 'NONE.img' 600\n\
                   100 7200 1800 1800 100 1 1024 0 'NONE.img' 600\n";

/// One arrival every ten minutes, with that many of a machine's eight cores and as large a part of its
/// memory. Each runs for six hours, except that every tenth runs for ten minutes.
fn arrivals(cores: u32) -> Arrivals {
    let memory_gib = 8 * cores;
    let mut csv = "arrival_s,batch,vcpus,mem_gib,duration_s,censored\n".to_owned();
    for number in 0..100 {
        let runs_s = if number % 10 == 0 { 600 } else { 21_600 };
        writeln!(csv, "{},{number},{cores},{memory_gib},{runs_s},0", number * 600).expect("there is memory");
    }
    Arrivals::from_csv(&csv, 1).expect("a record")
}

fn trace(swf: &str, lwf: &str) -> Trace {
    Trace::from_swf(swf).expect("a trace").with(Trace::from_lwf(lwf).expect("a trace"))
}

fn served(trace: &Trace, variant: &str) -> Figures {
    served_beside(trace, variant, &arrivals(8))
}

fn served_beside(trace: &Trace, variant: &str, arrivals: &Arrivals) -> Figures {
    let variant = Variant::from_name(variant).expect("a variant");
    replay(trace, arrivals, &variant, &Pace::default(), 1).expect("figures")
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6 * other.abs().max(1.0)
}

#[test]
fn a_small_workload_has_the_figures_that_it_must_have() {
    let figures = served(&trace(SWF, LWF), "plain");
    // Together, the reservations would need 172 hosts.
    let asked = 72.0 * 0.5 + 100.0 * 0.5;
    let reservations =
        Share { requests: 2, accepted: 1, failed: 0, asked_node_hours: asked, accepted_node_hours: 36.0 };
    assert_eq!(figures.reservations, reservations);
    assert_eq!(figures.answers, Answers { as_asked: 1, refused: 1, ..Answers::default() });
    let batch = figures.best_effort;
    assert_eq!((batch.requests, batch.accepted, batch.failed), (2, 2, 0));
    assert!(near(batch.asked_node_hours, 144.0 + 100.0 * 50.0 / 60.0));
    // Each requests an extra minute.
    assert!(near(batch.accepted_node_hours, (144.0 * 61.0 + 100.0 * 51.0) / 60.0));
    // A handover takes three calls and three looks.
    assert_eq!((figures.late_starts, figures.longest_handover_s), (0, 0.75));
    // The second job waits for the first, whose hosts are released by two calls and looks. The first waits
    // only for its handover.
    let second = 1800.75 + 1.05 - 60.0;
    let waiting = Spread { mean: f64::midpoint(0.75, second), median: 0.75, p95: second, most: second };
    assert!(near(figures.waiting_s.mean, waiting.mean), "{figures:#?}");
    assert_eq!((figures.waiting_s.median, figures.waiting_s.most), (0.75, second));
    assert!(near(figures.slowdown.most, (second + 3000.0) / 3000.0));
    // The reservation ends at its date, the jobs when they finish.
    let leased = 144.0 * 1800.0 + 100.0 * 3000.0 + 72.0 * 1799.25;
    assert_eq!(figures.makespan_s, 9000.3);
    let all = 144.0 * figures.makespan_s;
    assert!(near(figures.utilisation, leased / all), "{figures:#?}");
    assert!(near(figures.used_kwh, (leased * 0.3 + (all - leased) * 0.12) / 3600.0));
    assert_eq!((figures.saved_kwh, figures.switched_off, figures.guests, figures.hunts), (0.0, 0, 0, 0));
}

#[test]
fn who_is_refused_accepts_an_offer_that_comes_near() {
    let figures = served(&trace(SWF, LWF), "offers");
    // Half an hour later, which is also its length.
    assert_eq!(figures.answers, Answers { as_asked: 1, later: 1, ..Answers::default() });
    assert_eq!((figures.reservations.accepted, figures.late_starts), (2, 0));
    assert!(near(figures.reservations.accepted_node_hours, 36.0 + 50.0));
    // Three quarters of an hour would be too late, but 72 of 100 hosts are enough.
    let longer = LWF.replacen("1800 1800 72", "2700 2700 72", 1);
    let figures = served(&trace(SWF, &longer), "offers");
    assert_eq!(figures.answers, Answers { as_asked: 1, fewer_hosts: 1, ..Answers::default() });
    assert!(near(figures.reservations.accepted_node_hours, 54.0 + 36.0));
    // Less than half of the hosts isn't enough.
    let wide = longer.replacen("2700 2700 72", "2700 2700 104", 1);
    let figures = served(&trace(SWF, &wide), "offers");
    assert_eq!(figures.answers, Answers { as_asked: 1, refused: 1, ..Answers::default() });
}

#[test]
fn a_reservation_that_waits_is_served_when_a_job_is_done_before_its_time() {
    let long = SWF.replacen("144 3600", "144 14400", 1);
    let (plain, waiting) = (served(&trace(&long, LWF), "plain"), served(&trace(&long, LWF), "waitlist"));
    assert_eq!(plain.answers, Answers { refused: 2, ..Answers::default() });
    assert_eq!(waiting.answers, Answers { after_waiting: 1, refused: 1, ..Answers::default() });
    assert_eq!((waiting.reservations.accepted, waiting.late_starts), (1, 0));
}

#[test]
fn a_reservation_that_is_late_is_seen() {
    // Every call takes half a minute, so a handover takes more than a minute.
    let timing = Timing { call: Between::secs(30, 30), ..Pace::default().timing };
    let slow = Pace { timing, ..Pace::default() };
    let figures = replay(&trace("", LWF), &Arrivals::default(), &Variant::ALL[0], &slow, 1).expect("figures");
    assert_eq!(figures.late_starts, 1, "{figures:#?}");
    assert!(figures.longest_handover_s > 60.0);
    // A reservation that is over before its handover never starts, which counts as late too.
    let short = LWF.replace("1800 1800", "60 60");
    let figures =
        replay(&trace("", &short), &Arrivals::default(), &Variant::ALL[0], &slow, 1).expect("figures");
    assert_eq!((figures.late_starts, figures.reservations.failed), (1, 1));
}

#[test]
fn what_saving_power_saves_is_what_machines_draw_less_and_nobody_is_late() {
    let later = LWF.replace(" 7200 ", " 36000 ");
    let (plain, saving) = (served(&trace(SWF, &later), "plain"), served(&trace(SWF, &later), "power"));
    assert_eq!((saving.late_starts, saving.reservations), (0, plain.reservations));
    assert_eq!(saving.makespan_s, plain.makespan_s);
    assert!(saving.switched_off > 100 && saving.saved_kwh > 50.0, "{saving:#?}");
    // The service measures from call to call, and each call takes a fraction of a second.
    let less = plain.used_kwh - saving.used_kwh;
    assert!((less / saving.saved_kwh - 1.0).abs() < 1e-4, "{less} {saving:#?}");
}

#[test]
fn a_hunt_moves_guests_away_that_are_in_the_way_of_a_job() {
    // After twelve hours, guests are on more hosts than the job can spare.
    let late = "1 43200 0 600 -1 -1 -1 136 3600 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
    let (beside, hunting) = (served(&trace(late, LWF), "guests"), served(&trace(late, LWF), "hunts"));
    assert_eq!(beside.guests, hunting.guests);
    assert!(beside.guests > 20 && beside.guests_moved == 0);
    assert_eq!((beside.best_effort.accepted, beside.hunts), (0, 0), "{beside:#?}");
    assert_eq!((hunting.best_effort.accepted, hunting.best_effort.failed, hunting.hunts), (1, 0, 1));
    assert!(hunting.guests_moved > 0, "{hunting:#?}");
    // Reservations have hosts without guests.
    assert_eq!((hunting.late_starts, hunting.reservations), (0, beside.reservations));
}

#[test]
fn preemptible_instances_fill_gaps_and_nobody_is_late_for_them() {
    let later = LWF.replace(" 7200 ", " 36000 ");
    let (plain, filled) = (served(&trace(SWF, &later), "plain"), served(&trace(SWF, &later), "fill"));
    assert_eq!((filled.late_starts, filled.reservations), (0, plain.reservations));
    let fill = filled.fill;
    assert_eq!(fill.requests, fill.started + fill.refused + fill.without_result, "{fill:#?}");
    assert!(fill.done > 0 && fill.core_hours > fill.lost_core_hours, "{fill:#?}");
    assert!(fill.utilisation > filled.utilisation, "{filled:#?}");
    assert_eq!(plain.fill, Fill::default());
    // Instances occupy only as many machines as arrive in ten hours, so a reservation of half of all hosts
    // avoids them. One of all hosts can't.
    let wide = later.replace(" 72 ", " 144 ");
    let everywhere = served(&trace(SWF, &wide), "fill");
    assert_eq!((everywhere.late_starts, everywhere.reservations.accepted), (0, 1));
    assert!(everywhere.fill.preempted > 10 && everywhere.fill.lost_core_hours > 100.0, "{everywhere:#?}");
    // A reservation made while instances run needs some of their hosts. The remaining hosts have capacity for
    // the instances that have to move.
    let late = trace(SWF, "30000 36000 1800 1800 124 1 1024 0 'NONE.img' 600\n");
    let half = arrivals(4);
    let (leaving, moving) = (served_beside(&late, "fill", &half), served_beside(&late, "move", &half));
    assert_eq!((moving.late_starts, moving.reservations), (0, leaving.reservations));
    assert!(leaving.fill.preempted > 10 && moving.fill.preempted == 0, "{leaving:#?} {moving:#?}");
    assert!(near(moving.fill.lost_core_hours, 0.0), "{moving:#?}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let trace = trace(SWF, LWF);
    for variant in Variant::ALL {
        let once = served(&trace, variant.name);
        assert_eq!(served(&trace, variant.name), once, "{}", variant.name);
    }
}

#[test]
fn a_wrong_command_line_and_a_wrong_file_are_said() {
    let said = |line: &str| {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        command(&arguments).expect_err("wrong").to_string()
    };
    assert!(said("--swf").starts_with("--swf needs a value; usage: simulation workload"));
    assert!(said("--limit many").starts_with("--limit cannot be 'many'"));
    assert!(said("--variant best").starts_with("no variant is called 'best'"));
    assert!(said("--json yes").starts_with("'--json' is not understood"));
    assert!(said("--swf no-such-file").starts_with("cannot read no-such-file: "));
}
