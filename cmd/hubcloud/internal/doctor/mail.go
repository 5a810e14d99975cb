package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/httpapi/mail"
	"hubcloud/streams/outbox"
)

// checkMail says whether the mail server takes us, without sending anything, and which mails wait
// or have failed.
func checkMail(ctx context.Context, p *patient, f *findings) {
	checkMailServer(ctx, p, f)
	checkWaiting(p, f)
	checkFailed(p, f)
}

// checkMailServer greets the mail server as a delivery does. Without its password it goes as far as
// encryption.
func checkMailServer(ctx context.Context, p *patient, f *findings) {
	url := p.SMTPURL
	if url == "" && p.Started != nil {
		url = p.Started.MailServer
	}
	switch {
	case url == "" && p.Started == nil:
		f.add(
			Skipped, "it is not known where mails go",
			"name the mail server with --smtp-url to have it looked at, too",
		)
		return
	case url == "" && !p.Started.HasRole("api"):
		f.note("this service sends no mails: it is not an API")
		return
	case url == "":
		checkFolder(p, f)
		return
	}
	server, err := mail.ParseServer(url)
	if err != nil {
		f.add(
			Wrong, fmt.Sprintf("--smtp-url: %v", err),
			"give it as serve takes it: smtp://USER:PASSWORD@HOST:PORT",
		)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	secured, err := mail.NewSMTP(server, nil).Greet(ctx)
	if err != nil {
		f.add(
			Wrong,
			fmt.Sprintf("the mail server does not take us: %v", err),
			"see its address, its certificate and the login in --smtp-url; mails wait meanwhile, "+
				"until their links expire",
		)
		return
	}
	how := "in the clear"
	if secured {
		how = "encrypted"
	}
	if server.User == "" && p.SMTPURL == "" {
		f.note(
			"%s greets us, %s (a login was not tried: its password is known to the service alone, or to --smtp-url)",
			server, how,
		)
		return
	}
	f.note("%s takes us, %s", server, how)
}

// checkFolder tells of an installation whose mails go no further than a folder.
func checkFolder(p *patient, f *findings) {
	entries, err := os.ReadDir(p.path("outbox"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.add(
			Unknown, fmt.Sprintf("the folder that mails are written into cannot be read: %v", err),
			"ask as the user whom the service runs as",
		)
		return
	}
	written := 0
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".eml") {
			written++
		}
	}
	found := fmt.Sprintf(
		"there is no mail server: mails go no further than %s, where %d are", p.path("outbox"),
		written,
	)
	if p.live() {
		f.add(
			Warning, found,
			"name one with --smtp-url: without it nobody gets an invitation, or a link to sign in",
		)
		return
	}
	f.note("%s", found)
}

// checkWaiting looks at the queue of mails.
func checkWaiting(p *patient, f *findings) {
	all, err := p.cloud()
	if err != nil {
		f.untold("which mails wait cannot be told: ", err)
		return
	}
	for _, s := range all {
		if s.Name == outbox.Stream {
			judgeWaiting(p.Limits, s, f)
		}
	}
}

func judgeWaiting(limits Limits, s survey.Stream, f *findings) {
	if s.Messages == 0 {
		f.note("no mail waits")
		return
	}
	age := time.Since(s.Oldest)
	found := fmt.Sprintf("%d mails wait, the oldest for %s", s.Messages, ago(age))
	if age > limits.MailAge {
		f.add(
			Wrong,
			found,
			"see what the service's log says of them (\"mail\"): a server that is away, or that "+
				"defers or greylists them",
		)
		return
	}
	f.note("%s", found)
}

// checkFailed reads what the service on this machine has counted since it started.
func checkFailed(p *patient, f *findings) {
	families, err := p.metrics()
	if err != nil {
		return // the component service tells that
	}
	for _, outcome := range []struct{ name, said string }{
		{"rejected", "rejected by the mail server"}, {"expired", "not delivered before their links expired"},
	} {
		if n, ok := gauge(families, "hubcloud_outbox_mails_total", "outcome", outcome.name); ok &&
			n > 0 {
			f.add(
				Warning,
				fmt.Sprintf("%.0f mails were %s since the service started", n, outcome.said),
				"the service's log names each at level error; those people have to be invited again",
			)
		}
	}
}
