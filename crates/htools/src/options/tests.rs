//! Accepted and rejected command lines.

use cluster::InitialN1;
use proptest::prelude::*;

use super::*;

fn run(program: Program, line: &[&str]) -> Result<Options, Stop> {
    parse(program, &line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

#[test]
fn programs_have_names() {
    for program in Program::ALL {
        assert_eq!(Program::from_name(&program.name().to_uppercase()), Some(program));
    }
    assert_eq!(Program::from_name("hbal2"), None);
}

#[test]
fn options_of_our_own_are_on_the_page_of_differences() {
    let page = include_str!("../../../../docs/reference/differences.md");
    for program in Program::ALL {
        for flag in table::flags(program).filter(|flag| flag.own) {
            assert!(page.contains(&format!("--{}`", flag.long)), "--{} of {}", flag.long, program.name());
        }
    }
}

#[test]
fn values_arrive() {
    let check = |line: &[&str], change: fn(&mut Options)| {
        let mut expect = Options::default();
        change(&mut expect);
        assert_eq!(run(Program::Hbal, line), Ok(expect), "{line:?}");
    };
    check(&[], |_| {});
    check(&["-qvq", "-tF", "-l0"], |o| {
        (o.verbosity, o.text_data, o.max_length) = (0, Some("F".to_owned()), 0);
    });
    check(&["-t", "F", "--text-data=G"], |o| o.text_data = Some("G".to_owned()));
    check(&["--text", "--", "--prio=high"], |o| {
        (o.text_data, o.priority) = (Some("--".to_owned()), Some(Priority::High));
    });
    check(&["-l", "-1", "-e1e-3"], |o| o.min_score = 1e-3);
    check(&["-p"], |o| o.print_nodes = Some(FieldSelection::Default));
    check(&["-vpname,idx"], |o| {
        o.verbosity = 2;
        o.print_nodes = Some(FieldSelection::Only(vec!["name".to_owned(), "idx".to_owned()]));
    });
    check(&["--print-nodes=+plist"], |o| {
        o.print_nodes = Some(FieldSelection::DefaultAnd(vec!["plist".to_owned()]));
    });
    check(&["-C"], |o| o.print_commands = Some(PrintCommands::Stdout));
    check(&["-CF"], |o| o.print_commands = Some(PrintCommands::File("F".to_owned())));
    check(&["--mond", "--mond-data", "F"], |o| (o.mond, o.mond_data) = (true, Some("F".to_owned())));
    check(&["--mond=yes", "--mond=no"], |_| {});
    check(&["-O", "a", "-Ob"], |o| o.offline = vec!["b".to_owned(), "a".to_owned()]);
    check(&["-L", "--luxi=S"], |o| o.luxi = Some(LuxiSocket::Path("S".to_owned())));
    check(&["--select-instances=a,b", "--exclude-instances="], |o| {
        o.select_instances = vec!["a".to_owned(), "b".to_owned()];
    });
    check(&["--rapi-ca=ca.pem", "--mond-port", "99"], |o| {
        (o.rapi_ca, o.mond_port) = (Some("ca.pem".to_owned()), 99);
    });
    check(&["--explain", "--json", "--n1-initial=recorded", "--threads", "3"], |o| {
        (o.explain, o.json, o.n1_initial, o.threads) = (true, true, InitialN1::Recorded, 3);
    });
    assert_eq!(run(Program::Hroller, &["--search=deep"]).unwrap().search, Search::Deep);
    let hail = run(Program::Hail, &["a", "-v", "--", "-b", "--restrict-allocation-to=n1,n2"]).unwrap();
    assert_eq!(hail.positional, ["a", "-b", "--restrict-allocation-to=n1,n2"]);
    assert_eq!(run(Program::Hail, &["-v-", "-v"]).unwrap().positional, ["-v"]);
    assert_eq!(
        run(Program::Hspace, &["--tiered-alloc=1g,512,2"]).unwrap().tiered_alloc,
        Some(AllocSpec { disk: 1024, memory: 512, cpus: 2, spindles: 1 })
    );
}

#[test]
fn mistakes() {
    let check = |program, line: &[&str], status: u8, expect: &[&str]| {
        let stop = run(program, line).unwrap_err();
        let lines: Vec<&str> = stop.stderr.lines().take_while(|l| !l.is_empty()).collect();
        assert_eq!((stop.status, lines.as_slice()), (status, expect), "{line:?}");
        assert_eq!(stop.stdout, "");
    };
    let syntax = |line: &[&str], expect: &[&str]| {
        let mut expect: Vec<String> = expect.iter().map(|&l| l.to_owned()).collect();
        expect[0].insert_str(0, "Command line error: ");
        check(Program::Hbal, line, USAGE, &expect.iter().map(String::as_str).collect::<Vec<_>>());
    };
    syntax(&["--x=3"], &["unrecognized option `--x=3'"]);
    syntax(&["-Zt"], &["option `-t' requires an argument FILE", "unrecognized option `-Z'"]);
    syntax(&["-vv=1"], &["unrecognized option `-='", "unrecognized option `-1'"]);
    syntax(&["-v-x"], &["unrecognized option `--x'"]);
    syntax(&["--text-data"], &["option `--text-data' requires an argument FILE"]);
    syntax(&["--no-disk=1"], &["option `--no-disk' doesn't allow an argument"]);
    syntax(&["-h", "--explai"], &["unrecognized option `--explai'"]);
    syntax(&["--mond=x", "--simu=x"], &["unrecognized option `--simu=x'"]);
    let ambiguous = run(Program::Hbal, &["--exc=3"]).unwrap_err();
    let lines: Vec<&str> = ambiguous.stderr.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "Command line error: option `--exc' is ambiguous; could be one of:");
    let names = ["--exclude-instances=INSTS", "--exclusion-tags=TAG,..."];
    assert!(names.iter().all(|name| lines.iter().any(|line| line.contains(name))), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");

    let value = |program, line: &[&str], expect: &str| {
        check(program, line, FAILURE, &["Error while parsing command line arguments:", expect]);
    };
    for (word, expect) in [
        ("-l1.5", "max solution length: cannot parse string '1.5'"),
        ("-ex", "min score: cannot parse string 'x'"),
        ("-g", "min gain: cannot parse string '--help'"),
        ("--min-gain-limit=x", "min gain limit: cannot parse string 'x'"),
        ("--min-disk=1%", "min free disk space: leftover characters when parsing '1%': '%'"),
        ("--max-cpu=x", "parsing max-cpu: cannot parse string 'x'"),
        ("--max-cpu=0", "Invalid value of the max-cpu ratio, expected >0"),
        ("--static-kvm=x", "static node memory: cannot parse string 'x'"),
        ("--mond=", "Invalid choice '', pass one of 'yes' or 'no'"),
        ("--prio=foo", "Unknown priority 'foo', pass one of 'low', 'normal' or 'high'"),
        ("--threads=-1", "number of threads: expected 0 or more, not '-1'"),
        ("--mond-port=0", "port of monitoring daemons: expected 1 to 65535, not '0'"),
        ("--n1-initial=x", "Unknown rule for --n1-initial 'x', pass one of 'reported' or 'recorded'"),
    ] {
        value(Program::Hbal, &["foo", word, "--help"], expect);
    }
    value(Program::Hroller, &["--search=x"], "Unknown search 'x', pass one of 'exact' or 'deep'");
    value(Program::Hbal, &["-e", "y", "-l", "x"], "min score: cannot parse string 'y'");
    for (word, expect) in [
        ("--standard-alloc=1g", "Invalid standard specification: '1g', expected disk,ram,cpu"),
        ("--standard-alloc=g,1,1", "standard specs disk: Can't parse string 'g'"),
        (
            "--tiered-alloc=1,1x,1",
            "tiered specs memory: Unknown unit 'x', use m, g or t (1024) or M, G or T (1000)",
        ),
        ("--tiered-alloc=1,1,x", "tiered specs cpus: cannot parse string 'x'"),
        ("--tiered-alloc=1,1,1,x", "tiered specs spindles: cannot parse string 'x'"),
        ("--spindle-use=-1", "Invalid value of the spindle-use (expected >= 0)"),
        (
            "--disk-template=foo",
            "Invalid string value for type DiskTemplate: \"foo\", pass one of diskless, file, sharedfile, plain, \
             blockdev, drbd, rbd, ext, gluster",
        ),
    ] {
        value(Program::Hspace, &[word], expect);
    }
    for line in [&["foo"][..], &["-"], &[""], &["--", "-l", "x"], &["-p", "name"]] {
        check(Program::Hbal, line, FAILURE, &["Error: This program doesn't take any arguments."]);
    }
    check(Program::Harep, &["foo"], FAILURE, &["Error: this program doesn't take any arguments."]);
}

#[test]
fn sizes_are_bounded_so_that_sums_do_not_overflow() {
    let (most, least) = (i64::MAX, i64::MIN);
    let line = format!("--standard-alloc={most},{least},{most},{least}");
    let memory = format!("--static-kvm-node-memory={most}");
    let spindles = format!("--spindle-use={most}");
    let options = run(Program::Hspace, &[&line, &memory, &spindles]).unwrap();
    let bound = 1 << 40;
    let spec = AllocSpec { disk: bound, memory: -bound, cpus: bound, spindles: -bound };
    assert_eq!(options.standard_alloc, Some(spec));
    assert_eq!((options.static_kvm_node_memory, options.spindle_use), (bound, Some(bound)));
}

#[test]
fn options_of_the_deep_search_need_it() {
    for (line, expect) in [
        (&["--max-copies=usual"][..], "Error: --max-copies needs --search=deep\n"),
        (&["--search-seed=0", "--search=exact"], "Error: --search-seed needs --search=deep\n"),
        (&["--search-rounds=9", "--search-time=1"], "Error: --search-rounds needs --search=deep\n"),
        (
            &["--search=deep", "--repair-only"],
            "Error: --repair-only has no deep search, leave out --search=deep\n",
        ),
    ] {
        let stop = run(Program::Hbal, line).unwrap_err();
        assert_eq!((stop.status, stop.stderr.as_str()), (FAILURE, expect), "{line:?}");
        let options = run(Program::Hbal, &[line, &["--search=deep"]].concat());
        assert_eq!(options.is_ok(), !line.contains(&"--repair-only"), "{line:?}");
    }
    for flag in Program::ALL.into_iter().flat_map(table::flags) {
        assert_eq!(flag.needs_deep_search(), flag.help.starts_with("with --search=deep"), "--{}", flag.long);
    }
}

#[test]
fn requests_for_help() {
    let check = |line: &[&str], begins: &str| {
        let stop = run(Program::Hail, line).unwrap_err();
        assert_eq!((stop.status, stop.stderr.as_str()), (SUCCESS, ""));
        assert!(stop.stdout.starts_with(begins), "{}", stop.stdout);
        stop.stdout
    };
    let version = concat!("hail (allotment) version ", env!("CARGO_PKG_VERSION"), "\n");
    check(&["-V", "--help-completion", "foo", "bar"], &format!("{version}running on "));
    let help = check(&["--help-completion", "-V", "--help"], &format!("{version}Usage: hail [OPTION...]\n"));
    assert!(help.contains("  -t FILE     --text-data=FILE  "), "{help}");
    let completion = check(&["--help-completion"], "-p,--print-nodes none\n");
    for line in ["-t,--text-data file", "--mond choices=yes,no", "--restrict-allocation-to manynodes"] {
        assert!(completion.lines().any(|l| l == line), "{line}");
    }
    assert!(completion.ends_with("\nfile 1 1\n"));
}

#[test]
fn options_are_known_by_one_name_each() {
    for program in Program::ALL {
        let mut names: Vec<String> = table::flags(program)
            .flat_map(|f| f.short.map(String::from).into_iter().chain([f.long.to_owned()]))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

proptest! {
    #[test]
    fn every_line_is_answered(
        line in prop::collection::vec("-{0,2}[a-zé=]{0,6}|--[a-z-]{1,12}=?\\PC{0,2}", 0..6),
        program in prop::sample::select(&Program::ALL[..]),
    ) {
        if let Err(stop) = parse(program, &line) {
            prop_assert_eq!(stop.stdout.is_empty(), stop.status != SUCCESS);
        }
    }
}
