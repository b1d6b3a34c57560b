// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"tamga/internal/cli"
)

// completion is the sub-command completion. Its scripts ask the hidden sub-command complete, so that they
// are the same for every release.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// scripts are what the shells run. In bash and zsh, words that the program does not know are names of
// files.
var scripts = map[string]string{
	"bash": `# Completion of tamga for bash.
_tamga() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tamga tamga tamga-admin
`,
	"zsh": `#compdef tamga tamga-admin
# Completion of tamga for zsh.
_tamga() {
  local -a found
  local line
  for line in "${(@f)$($words[1] complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#found} )); then
    _describe tamga found
  else
    _files
  fi
}
if [[ $funcstack[1] = _tamga ]]; then
  _tamga "$@"
else
  compdef _tamga tamga tamga-admin
fi
`,
	"fish": `# Completion of tamga for fish.
function __tamga_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c tamga -a '(__tamga_complete)'
complete -c tamga-admin -a '(__tamga_complete)'
`,
}

// Run prints the script of the shell.
func (k *completion) Run(c *cli.Console) error {
	_, err := io.WriteString(c.Stdout, scripts[k.Shell])
	return err
}

// complete is the sub-command that the scripts of completion run.
type complete struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words of the command line. The last one is completed."`
}

// Run prints the words that can be in place of the last one, each with its help behind a tab.
func (k *complete) Run(c *cli.Console, model *kong.Application) error {
	words := k.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	for _, w := range candidates(model, before, last) {
		if _, err := fmt.Fprintln(c.Stdout, w); err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the lines for the word last behind the words before.
func candidates(model *kong.Application, before []string, last string) (lines []string) {
	node := model.Node
	var flag *kong.Flag // the one that waits for its value
	for _, w := range before {
		if flag != nil {
			flag = nil
			continue
		}
		if name, isFlag := strings.CutPrefix(w, "-"); isFlag {
			flag = flagNamed(node, name)
			if flag != nil && flag.IsBool() {
				flag = nil
			}
			continue
		}
		for _, child := range node.Children {
			if child.Name == w && !child.Hidden {
				node = child
				break
			}
		}
	}
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			help, _, _ = strings.Cut(help, ". ")
			lines = append(lines, word+"\t"+strings.ReplaceAll(help, "\n", " "))
		}
	}
	values := func(v *kong.Value) {
		for _, value := range v.EnumSlice() {
			if value != "" {
				add(value, v.Help)
			}
		}
	}
	if flag != nil {
		values(flag.Value)
		return lines
	}
	if strings.HasPrefix(last, "-") {
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				add("--"+f.Name, f.Help)
			}
		}
		return lines
	}
	for _, child := range node.Children {
		if !child.Hidden {
			add(child.Name, child.Help)
		}
	}
	for _, p := range node.Positional {
		values(p)
	}
	return lines
}

// flagNamed returns the flag that is written as "-" and name, with "--" if name begins with "-".
func flagNamed(node *kong.Node, name string) *kong.Flag {
	name, long := strings.CutPrefix(name, "-")
	if strings.Contains(name, "=") {
		return nil // its value is in the same word
	}
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if long && f.Name == name || !long && f.Short != 0 && string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}
