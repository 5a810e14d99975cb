package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// listed matches a command in the help of the program: "  key (keys) create   Create an API key…".
// aliases matches its other names.
var (
	listed  = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*(?: [a-z()][a-z()-]*)*)(?:  |$)`)
	aliases = regexp.MustCompile(` \([^)]*\)`)
)

// writeManPages writes a page of section 1 for the program and for each of its commands into a
// folder, from what the binary itself prints as help.
func writeManPages(binary, version, date, folder string) error {
	help, err := helpOf(binary)
	if err != nil {
		return err
	}
	_, commands, ok := strings.Cut(help, "\nCommands:\n")
	if !ok {
		return fmt.Errorf("%s --help lists no commands", binary)
	}
	pages := map[string]string{"hubcloud": help}
	for _, command := range listed.FindAllStringSubmatch(commands, -1) {
		words := strings.Fields(aliases.ReplaceAllString(command[1], ""))
		name := "hubcloud-" + strings.Join(words, "-")
		if pages[name], err = helpOf(binary, words...); err != nil {
			return err
		}
	}
	for name, help := range pages {
		path := filepath.Join(folder, name+".1")
		if err := os.WriteFile(path, []byte(manPage(name, version, date, help)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func helpOf(binary string, command ...string) (string, error) {
	help := exec.Command(binary, append(command, "--help")...)
	help.Env = []string{"COLUMNS=100"}
	out, err := help.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", help.Args, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// manPage returns a page with the text of a help: the usage, the first sentence as what the command
// is, and the rest as it is printed.
func manPage(name, version, date, help string) string {
	usage, rest, _ := strings.Cut(help, "\n\n")
	what, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n", " "), ". ")
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %s 1 %q %q\n", strings.ToUpper(name), date[:len("2006-01-02")],
		"hubcloud "+version)
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", name, roff(strings.TrimSuffix(what, ".")))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(strings.TrimPrefix(usage, "Usage: ")))
	fmt.Fprintf(&page, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(rest))
	if name != "hubcloud" {
		page.WriteString(".SH SEE ALSO\n.BR hubcloud (1)\n")
	}
	return page.String()
}

// roff escapes text for a manual page.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
