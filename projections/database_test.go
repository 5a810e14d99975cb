package projections

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestADatabaseOfAnotherInstallationIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(t)
	_, err := Open(t.Context(), StoreConfig{URL: w.url, InstallationID: "another", Log: testLog(t)})
	if !errors.Is(err, ErrOtherInstallation) || !strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
}

func TestAnEncodingThatCannotHoldEveryTextIsRefused(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("narrow_%d", databases.Add(1))
	execute(t, server.URL(), "CREATE DATABASE "+name+" ENCODING 'SQL_ASCII' TEMPLATE template0")
	url := strings.Replace(server.URL(), "/postgres?", "/"+name+"?", 1)
	if _, err := Open(t.Context(), StoreConfig{URL: url, InstallationID: "test"}); !errors.Is(
		err, ErrEncoding,
	) {
		t.Error(err)
	}
}

// A directory that was restored from an older copy has other events under the same numbers.
func TestReadModelsOfAnotherStreamAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	stop := w.project(t, s)
	await(t, s, w.site(t, org, 1))
	await(t, s, w.site(t, org, 2))
	stop()
	elsewhere := newWorld(t)
	elsewhere.url = w.url
	for n, step := range []string{"shorter", "as long", "longer"} {
		elsewhere.site(t, org, 3+n)
		again := elsewhere.open(t)
		stop := elsewhere.project(t, again)
		var stopped *StoppedError
		within(
			t, step+": stopped",
			func() bool { return errors.As(again.Ready(t.Context()), &stopped) },
		)
		if text := stopped.Error(); !strings.Contains(text, ErrOtherStream.Error()) ||
			!strings.Contains(text, "hubcloud projections rebuild") {
			t.Errorf("%s: %v", step, text)
		}
		stop()
		if page, err := again.Sites(t.Context(), org, 50, ""); err != nil || len(page.Data) != 2 {
			t.Errorf("%s: something was written: %v, %v", step, page, err)
		}
	}
	// With the right stream it goes on, also when nothing new comes.
	stop = w.project(t, s)
	within(t, "ready with the right stream", func() bool { return s.Ready(t.Context()) == nil })
	stop()
}
