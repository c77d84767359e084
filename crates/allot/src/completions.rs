//! `allot completions`: scripts that complete commands and options for a shell, also those of Ganeti's programs where they
//! are called by the names of [`install-links`](crate::links).

use clap::Command;
use clap_complete::Shell;
use htools::options::Program;

/// The script for that shell, for these commands.
pub(crate) fn script(shell: Shell, tree: &mut Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, tree, "allot", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let links: Vec<&str> = Program::ALL.iter().map(|program| program.name()).collect();
    match shell {
        Shell::Bash => format!("{script}{}", bash(&links)),
        Shell::Zsh => zsh(&script, &links),
        Shell::Fish => {
            let wraps = links.iter().map(|link| format!("complete -c {link} --wraps 'allot {link}'\n"));
            script + &wraps.collect::<String>()
        }
        // The others have no words for it.
        _ => script,
    }
}

/// The words of a link's command line are those of `allot` with the link's name as the command.
fn bash(links: &[&str]) -> String {
    format!(
        r#"
_allot_link() {{
    COMP_WORDS=(allot "${{COMP_WORDS[0]##*/}}" "${{COMP_WORDS[@]:1}}")
    COMP_CWORD=$((COMP_CWORD + 1))
    _allot allot "$2" "${{COMP_WORDS[COMP_CWORD - 1]}}"
}}
complete -F _allot_link -o bashdefault -o default {}
"#,
        links.join(" ")
    )
}

fn zsh(script: &str, links: &[&str]) -> String {
    let names = links.join(" ");
    let own = "if [ \"$funcstack[1]\" = \"_allot\" ]; then\n    _allot \"$@\"\nelse\n    compdef _allot allot\nfi\n";
    let both = format!(
        r#"_allot_by_name() {{
    if [[ ${{words[1]:t}} != allot ]]; then
        words=(allot "${{words[1]:t}}" "${{(@)words[2,-1]}}")
        (( CURRENT += 1 ))
    fi
    _allot "$@"
}}

if [ "$funcstack[1]" = "_allot" ]; then
    _allot_by_name "$@"
else
    compdef _allot_by_name allot {names}
fi
"#
    );
    script.replacen("#compdef allot\n", &format!("#compdef allot {names}\n"), 1).replacen(own, &both, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    fn script_for(shell: Shell) -> String {
        script(shell, &mut help::tree())
    }

    #[test]
    fn every_shell_gets_completions_that_know_deep_options() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script_for(shell);
            assert!(script.contains("extend-by") && script.contains("simulated-racks"), "{shell}");
        }
    }

    #[test]
    fn links_are_completed_where_a_shell_can() {
        let zsh = script_for(Shell::Zsh);
        assert!(zsh.starts_with("#compdef allot hail "), "{}", &zsh[..80]);
        assert!(zsh.contains("    _allot_by_name \"$@\"\n") && zsh.ends_with("hsqueeze\nfi\n"), "{zsh}");
        assert!(script_for(Shell::Fish).contains("complete -c hbal --wraps 'allot hbal'\n"));
        assert!(script_for(Shell::Bash).ends_with(" hsqueeze\n"));
    }
}
