package cli

import (
	"context"
	"crypto/tls"
	_ "embed" // for the template
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"
	"time"

	"golang.org/x/term"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/hubbridge/kit/check"
)

// hubCommand groups the commands for people who make hubs.
type hubCommand struct {
	Check hubCheckCommand `cmd:"" help:"Check whether a hub follows the hub protocol."`
}

// hubCheckCommand checks one hub.
type hubCheckCommand struct {
	Listen   string         `help:"Name or address under which the hub reaches this machine." default:"127.0.0.1" placeholder:"HOST"`
	HTTPPort int            `help:"Port for enrolments; 0 for any free one." name:"http-port" default:"0"`
	MQTTPort int            `help:"Port for MQTT; 0 for any free one." name:"mqtt-port" default:"0"`
	TLSCert  string         `help:"Certificate and chain (PEM) for enrolments over HTTPS, which the hub must trust. Without it enrolments are over HTTP." name:"tls-cert" type:"path" placeholder:"FILE"`
	TLSKey   string         `help:"Key (PEM) of --tls-cert." name:"tls-key" type:"path" placeholder:"FILE"`
	Serial   string         `help:"Serial that the hub has. Defaults to a new one." placeholder:"SERIAL"`
	Secret   string         `help:"Enrolment secret that the hub has. Defaults to a new one." placeholder:"SECRET"`
	State    string         `help:"Folder that keeps the authority, serial, secret and ports from check to check, so that the same hub can be checked again." type:"path" placeholder:"DIR"`
	Device   *int64         `help:"Device that gets the commands. Defaults to one with a writable channel, rather a switch or a light than a lock." placeholder:"ID"`
	Commands int            `help:"Commands that fill the hub's queue of events; 2100 fill the window of 2,000, which takes minutes on a real radio; 0 omits that step." default:"50"`
	Only     []string       `help:"Lines to check, separated by commas. Defaults to all." placeholder:"LINE"`
	List     bool           `help:"Print all lines with their rules, and end."`
	Timeout  *time.Duration `help:"How long the whole check may take. Defaults to 10m and a second for each of --commands."`
	JSON     bool           `help:"Print JSON, one object per line: the addresses, then each line of the list as it is decided and notes ({\"note\": …}), then the lines not seen." name:"json"`
	JUnit    string         `help:"Write the result as JUnit XML." name:"junit" type:"path" placeholder:"FILE"`
}

// Help returns the long help text.
func (*hubCheckCommand) Help() string {
	var lines strings.Builder
	for _, l := range check.Lines() {
		fmt.Fprintf(&lines, "\n  %-25s  %s", l.ID, l.Title)
	}
	return helpText("hub-check") + "\n" + lines.String()
}

// Run checks the hub.
func (c *hubCheckCommand) Run(ctx context.Context, out Output) error {
	if c.List {
		return c.printLines(out.Out)
	}
	if c.Listen == "" {
		return installation.Usagef("--listen: must not be empty")
	}
	var timeout time.Duration // 0 is the default
	if c.Timeout != nil {
		timeout = *c.Timeout
	}
	if c.Timeout != nil && timeout < time.Second {
		return installation.Usagef("--timeout: is %v, must be at least 1s", timeout)
	}
	certificate, err := c.certificate()
	if err != nil {
		return err
	}
	printer := &checkPrinter{out: out.Out, json: c.JSON, live: newProgress(out.Err, c.JSON),
		results: map[string]check.Result{},
	}
	hub, err := check.New(check.Config{
		Host: c.Listen, HTTPPort: c.HTTPPort, MQTTPort: c.MQTTPort, Serial: c.Serial,
		Certificate: certificate, Secret: c.Secret, State: c.State, Device: c.Device,
		Commands: c.Commands, Only: c.Only,
		Timeout: timeout, OnLine: printer.line, OnStep: printer.step, OnNote: printer.note,
	})
	if invalid := new(check.ConfigError); errors.As(err, &invalid) {
		return installation.Usagef(
			"--%s: %s",
			strings.ReplaceAll(invalid.Field, " ", "-"),
			invalid.Problem,
		)
	}
	if err != nil {
		return err
	}
	var junit *os.File
	if c.JUnit != "" { // before the check, which takes a while
		if junit, err = os.Create(c.JUnit); err != nil {
			hub.Close()
			return installation.Usagef("--junit: %v", err)
		}
		defer junit.Close()
	}
	if err := printer.begin(hub); err != nil {
		hub.Close()
		return err
	}
	report, err := hub.Run(ctx)
	printer.live.end()
	if err != nil {
		return err
	}
	printer.end(report)
	if junit != nil {
		if err := writeJUnit(junit, report); err != nil {
			return fmt.Errorf("write %s: %w", c.JUnit, err)
		}
	}
	if !report.OK() {
		return errUnhealthy // the lines say what is wrong
	}
	return nil
}

// certificate reads the certificate of the enrolment, nil for none.
func (c *hubCheckCommand) certificate() (*tls.Certificate, error) {
	switch {
	case c.TLSCert == "" && c.TLSKey == "":
		return nil, nil
	case c.TLSCert == "" || c.TLSKey == "":
		return nil, installation.Usagef("--tls-cert and --tls-key: give both or none")
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, installation.Usagef("--tls-cert, --tls-key: %v", err)
	}
	return &pair, nil
}

// printLines prints every line of the list.
func (c *hubCheckCommand) printLines(w io.Writer) error {
	lines := make([]listedLine, 0, len(check.Lines()))
	for _, l := range check.Lines() {
		lines = append(lines, listedLineOf(l))
	}
	header := []string{"LINE", "RULES", "WHAT A HUB DOES"}
	return list(w, outputFlags{c.JSON}, each(lines), header, func(l listedLine) []string {
		return []string{l.Line, strings.Join(l.Rules, " "), l.Title}
	})
}

// checkPrinter prints the lines of a check as they are decided. On a terminal it repaints a last
// line with what is going on.
type checkPrinter struct {
	out  io.Writer
	json bool
	live *progress
	// current is what is going on.
	current string
	// results are the lines that have been decided, by their IDs.
	results map[string]check.Result
}

// begin prints what the hub must be configured with.
func (p *checkPrinter) begin(check *check.Check) error {
	return outputFlags{p.json}.show(
		p.out, object{
			{"enroll", check.EnrolURL()}, {"broker", check.BrokerURL()},
			{"serial", check.Serial()}, {"secret", check.Secret()},
		},
		"This is the service for one hub. Configure the hub with these, and start it:\n\n"+
			"  service    %[1]s\n  serial     %[2]s\n  secret     %[3]s\n\n"+
			"The hub enrols with POST %[1]s/link/v1/certificates and gets the broker's\n"+
			"address in the answer: %[4]s\n\n"+
			"A hub in software to compare with:\n\n"+
			"  hubcloud virtualhub run --enroll %[1]s --serial %[2]s --secret=%[3]s\n\n",
		check.EnrolURL(), check.Serial(), check.Secret(), check.BrokerURL(),
	)
}

// step shows what is going on.
func (p *checkPrinter) step(text string) {
	p.current = text
	p.repaint()
}

// note prints what the person at the hub must know meanwhile.
func (p *checkPrinter) note(text string) {
	if p.json {
		// As for lines.
		_ = printJSON(p.out, object{{"note", text}})
		return
	}
	p.live.end()
	fmt.Fprintf(p.out, "%-8s  %s\n", "note", text)
	p.repaint()
}

// repaint draws the last line of a terminal.
func (p *checkPrinter) repaint() {
	if !p.live.terminal || p.live.quiet {
		return
	}
	n := p.counts()
	text := []rune(fmt.Sprintf("… %d passed, %d failed; %s", n.passed, n.failed, p.current))
	if file, ok := p.live.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			text = text[:min(len(text), width-1)]
		}
	}
	fmt.Fprint(p.live.w, clearLine, string(text))
}

// checkCounts are the numbers of lines of each kind.
type checkCounts struct{ passed, failed, warnings, unseen int }

// counts counts the lines that have been decided.
func (p *checkPrinter) counts() (n checkCounts) {
	for _, r := range p.results {
		switch {
		case r.Status == check.Passed:
			n.passed++
		case r.Status == check.NotSeen:
			n.unseen++
		case r.OK():
			n.warnings++
		default:
			n.failed++
		}
	}
	return n
}

// line prints a line that has been decided.
func (p *checkPrinter) line(r check.Result) {
	p.results[r.ID] = r
	p.print(r)
	p.repaint()
}

func (p *checkPrinter) print(r check.Result) {
	if p.json {
		// Standard output is closed; there is nobody to tell.
		_ = printJSON(p.out, checkedLine{listedLineOf(r.Line), r.Status, r.OK(), r.Detail, r.Message})
		return
	}
	p.live.end()
	mark := marks[r.Status]
	if r.Status == check.Failed && r.OK() {
		mark = "warning"
	}
	fmt.Fprintf(p.out, "%-8s  %-22s  %s\n", mark, r.ID, r.Title)
	indent := strings.Repeat(" ", 10)
	if r.Detail != "" {
		fmt.Fprintf(p.out, "%s%s\n", indent, r.Detail)
	}
	if r.Message != "" {
		fmt.Fprintf(p.out, "%sthe hub's message: %s\n", indent, r.Message)
	}
	if r.Status == check.Failed {
		fmt.Fprintf(p.out, "%s%s: %s\n", indent, r.Rules[0], r.Sentence())
	}
}

// marks are the words for the states of lines.
var marks = map[check.Status]string{
	check.Passed: "passed", check.Failed: "FAILED", check.NotSeen: "not seen",
}

// end prints the lines that were not seen, and how many there are of each kind.
func (p *checkPrinter) end(report check.Report) {
	unexplained := false
	for _, r := range report {
		p.results[r.ID] = r
		if r.Status == check.NotSeen {
			p.print(r)
			unexplained = unexplained || r.Detail == ""
		}
	}
	if p.json {
		return
	}
	if unexplained {
		fmt.Fprintf(p.out, "\nThe check ended while %s.\n", p.current)
	}
	n := p.counts()
	fmt.Fprintf(p.out, "\n%d passed, %d failed, %d not seen", n.passed, n.failed, n.unseen)
	if n.warnings > 0 {
		fmt.Fprintf(p.out, ", %d warnings", n.warnings)
	}
	fmt.Fprintln(p.out)
}

// listedLine is the JSON of a line in a list.
type listedLine struct {
	Line     string   `json:"line"`
	Title    string   `json:"title"`
	Rules    []string `json:"rules"`
	Sentence string   `json:"sentence"`
}

func listedLineOf(l check.Line) listedLine {
	return listedLine{l.ID, l.Title, l.Rules, l.Sentence()}
}

// checkedLine is the JSON of a line that was checked.
type checkedLine struct {
	listedLine
	Status check.Status `json:"status"`
	// OK is whether the line does not make the check fail.
	OK      bool   `json:"ok"`
	Detail  string `json:"detail,omitempty"`
	Message string `json:"message,omitempty"`
}

//go:embed junit.xml.tmpl
var junitTemplate string

var junitReport = template.Must(
	template.New("junit").Funcs(template.FuncMap{"xml": xmlText}).Parse(junitTemplate),
)

// xmlText returns a text in XML, without surrounding space.
func xmlText(text string) (string, error) {
	var escaped strings.Builder
	err := xml.EscapeText(&escaped, []byte(strings.TrimSpace(text)))
	return escaped.String(), err
}

// writeJUnit writes a report as JUnit XML. A line that has not passed is a failure if it makes the
// check fail, and skipped otherwise.
func writeJUnit(w io.Writer, report check.Report) error {
	failures, skipped := 0, 0
	for _, r := range report {
		switch {
		case !r.OK():
			failures++
		case r.Status != check.Passed:
			skipped++
		}
	}
	return junitReport.Execute(w, map[string]any{
		"Report": report, "Failures": failures, "Skipped": skipped,
	})
}
