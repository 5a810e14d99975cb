package readmodel_test

import (
	"errors"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

func TestDatabaseOfAnotherInstallationIsRejected(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	w.OpenStore(t)
	_, err := readmodel.Open(
		t.Context(),
		readmodel.Config{URL: w.URL, InstallationID: "another", Logger: projectionstest.Logger(t)},
	)
	if !errors.Is(err, schema.ErrOtherInstallation) || !strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
}

func TestOtherEncodingIsRejected(t *testing.T) {
	t.Parallel()
	url := projectionstest.NewDatabase(t, "ENCODING 'SQL_ASCII' TEMPLATE template0")
	if _, err := readmodel.Open(t.Context(), readmodel.Config{
		URL: url, InstallationID: "test",
	}); !errors.Is(err, schema.ErrEncoding) {
		t.Error(err)
	}
}

// A directory that was restored from a backup has other events with the same sequences.
func TestReadModelsOfAnotherStreamAreRejected(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	projectionstest.Await(t, s, w.AddSite(t, org, 2))
	stop()
	elsewhere := projectionstest.New(t)
	elsewhere.URL = w.URL
	for n, step := range []string{"shorter", "as long", "longer"} {
		elsewhere.AddSite(t, org, 3+n)
		again := elsewhere.OpenStore(t)
		stop := elsewhere.Project(t, again).Stop
		var stopped *schema.StoppedError
		streamstest.Eventually(
			t, step+": stopped",
			func() bool { return errors.As(again.Ready(t.Context()), &stopped) },
		)
		if text := stopped.Error(); !strings.Contains(text, schema.ErrOtherStream.Error()) ||
			!strings.Contains(text, "hubcloud projections rebuild") {
			t.Errorf("%s: stopped by %v, want ErrOtherStream with advice", step, text)
		}
		stop()
		if page, err := again.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 2 {
			t.Errorf("%s: Sites: got %v, %v, want the two of the first stream", step, page, err)
		}
	}
	// With the right stream it continues, even without a new event.
	stop = w.Project(t, s).Stop
	streamstest.Eventually(
		t, "ready with the right stream", func() bool { return s.Ready(t.Context()) == nil },
	)
	stop()
}
