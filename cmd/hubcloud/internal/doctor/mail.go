package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/httpapi/mail"
	"hubcloud/streams/outbox"
)

// checkMail connects and logs in to the mail server as a delivery does, without sending a mail.
// When the password is unknown, it stops before the login.
func checkMail(ctx context.Context, t *target, f *findings) {
	url := t.SMTPURL
	if url == "" && t.Started != nil {
		url = t.Started.MailServer
	}
	switch {
	case url == "" && t.Started == nil:
		f.skip("no mail server is known").todo("name the mail server with --smtp-url to check it")
		return
	case url == "" && !t.Started.HasRole("api"):
		f.note("this service sends no mails: it does not have the role api")
		return
	case url == "":
		checkFolder(t, f)
		return
	}
	server, err := mail.ParseServer(url)
	if err != nil {
		f.wrong("--smtp-url: %v", err).todo(
			"give the flag as for serve: smtp://USER:PASSWORD@HOST:PORT",
		)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	secured, err := mail.NewSMTP(server, nil).Greet(ctx)
	if err != nil {
		f.wrong("the mail server cannot be used: %v", err).todo(
			"check the address, the certificate and the login in --smtp-url; mails wait until " +
				"their links expire",
		)
		return
	}
	how := "unencrypted"
	if secured {
		how = "encrypted"
	}
	if server.User == "" && t.SMTPURL == "" {
		f.note(
			"%s accepts connections, %s (the login was not checked: only the service, or "+
				"--smtp-url, knows the password)",
			server,
			how,
		)
		return
	}
	f.note("%s accepts the login, %s", server, how)
}

// checkFolder reports an installation that writes its mails to a folder.
func checkFolder(t *target, f *findings) {
	entries, err := os.ReadDir(t.path("outbox"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.unclear("the folder with mails cannot be read: %v", err).todo(
			"run the doctor as the user of the service",
		)
		return
	}
	written := 0
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".eml") {
			written++
		}
	}
	f.grade(
		verdictIf(t.live(), Warning),
		"start the service with --smtp-url: otherwise nobody receives invitations and sign-in "+
			"links",
		"there is no mail server: mails are only written to %s, which has %d", t.path("outbox"),
		written,
	)
}

// checkQueue reports mails that wait, and those that failed since the service started.
func checkQueue(_ context.Context, v *visit, f *findings) {
	all, err := v.cloud()
	if err != nil {
		f.unknown("which mails wait is unknown: ", err)
		return
	}
	if s, ok := find(all, outbox.Stream); ok {
		judgeWaiting(v.limits, s, f)
	}
	for _, outcome := range []struct{ name, text string }{
		{"rejected", "rejected by the mail server"},
		{"expired", "not delivered before their links expired"},
	} {
		if n := v.sum("hubcloud_outbox_mails_total", "outcome", outcome.name); n > 0 {
			f.warn("%.0f mails were %s since the service started", n, outcome.text).todo(
				"the service's log names each at level error; invite those people again",
			)
		}
	}
}

// judgeWaiting compares the oldest waiting mail with the limit.
func judgeWaiting(limits Limits, s jetstream.StreamInfo, f *findings) {
	if s.State.Msgs == 0 {
		f.note("no mail waits")
		return
	}
	age := time.Since(s.State.FirstTime)
	f.grade(
		verdictIf(age > limits.MailAge, Wrong),
		"see the service's log (\"mail\"): the mail server may be down, or defer or greylist mails",
		"%d mails wait, the oldest for %s", s.State.Msgs, ago(age),
	)
}
