//! `allot completions` prints shell scripts that call [`complete`](crate::complete). They also cover Ganeti's
//! programs if these are called by the names of [`install-links`](crate::links).

use clap::ValueEnum;
use htools::options::Program;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// Unsets `HTOOLS`, which would select another program.
const BASH: &str = r#"_allot() {
    local word about
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        if [[ $word == :files ]]; then
            compopt -o default 2>/dev/null
        else
            COMPREPLY+=("$word")
        fi
    done < <(env -u HTOOLS allot __complete bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null </dev/null)
}
complete -F _allot NAMES
"#;

const ZSH: &str = r#"#compdef NAMES

_allot() {
    local -a lines described
    local line word tab=$'\t'
    lines=("${(@f)$(env -u HTOOLS allot __complete zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null </dev/null)}")
    for line in $lines; do
        if [[ $line == :files ]]; then
            _files
            return
        fi
        word=${line%%$tab*}
        described+=("${word//:/\\:}:${line#*$tab}")
    done
    _describe allot described
}

if [ "$funcstack[1]" = "_allot" ]; then
    _allot "$@"
else
    compdef _allot NAMES
fi
"#;

const FISH: &str = r"function __allot_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (env -u HTOOLS allot __complete fish -- $words 2>/dev/null </dev/null)
    if test (count $lines) -eq 1; and test $lines[1] = :files
        __fish_complete_path (commandline -ct)
    else if test (count $lines) -gt 0
        printf '%s\n' $lines
    end
end
for name in NAMES
    complete -c $name -f -a '(__allot_complete)'
end
";

pub(crate) fn script(shell: Shell) -> String {
    let names = Program::ALL.iter().map(|program| program.name());
    let names = std::iter::once("allot").chain(names).collect::<Vec<_>>().join(" ");
    let script = match shell {
        Shell::Bash => BASH,
        Shell::Fish => FISH,
        Shell::Zsh => ZSH,
    };
    script.replace("NAMES", &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_short_and_complete_the_links_as_well() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            assert!(script.len() < 60_000, "{shell:?}: {} bytes", script.len());
            assert!(script.contains("allot hail ") && script.contains(" hsqueeze\n"), "{script}");
        }
        assert!(script(Shell::Zsh).starts_with("#compdef allot hail "));
    }
}
