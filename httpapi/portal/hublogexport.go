package portal

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
	"hubcloud/httpapi/portal/text"
)

const (
	// exportWriteTimeout is how long a browser may take to accept a part of an export.
	exportWriteTimeout = 10 * time.Second
	// exportFlush is after how many events an export is sent on.
	exportFlush = 500
)

// exportLog answers with the selected events of a hub's log as CSV, newest first. A failure after
// the first event breaks the connection off, so that the browser reports it.
func (req *request) exportLog(hub domain.HubID) error {
	q, filter := req.logQuery()
	infos, err := req.deviceInfos(hub)
	if err != nil {
		return err
	}
	view := hubLogView{infos: infos}
	zone := req.zone()
	out := newCSV(req.w)
	begin := func() {
		req.exportHeaders(hub, zone)
		out.row(
			text.Fill(text.Pages["csv-time"], "zone", zone.String()), text.Pages["csv-utc"],
			text.Pages["csv-device"], text.Pages["csv-number"], text.Pages["csv-event"],
			text.Pages["csv-severity"], text.Pages["csv-type"], text.Pages["csv-data"],
		)
	}
	begun := false
	complete, err := req.portal.Live.ExportLog(
		req.http.Context(), hub,
		live.LogRequest{At: q.At, Filter: filter, Devices: infos},
		func(entry live.LogEntry) error {
			if !begun {
				begun = true
				begin()
			}
			device, number := "", ""
			if entry.DeviceID != nil {
				device, number = view.Called(entry.DeviceID), strconv.FormatInt(*entry.DeviceID, 10)
			}
			return out.row(
				entry.Time.In(zone).Format("2006-01-02 15:04:05.000"),
				entry.Time.UTC().Format(domain.TimeLayout), device, number, entry.Text,
				entry.Severity.String(), entry.Type, string(entry.Data),
			)
		},
	)
	if err != nil && !begun {
		return err
	}
	if !begun {
		begin()
	}
	if err == nil && !complete {
		err = out.row(text.Fill(
			text.Pages["csv-cut"], "events", strconv.Itoa(live.MaxExport),
		))
	}
	if err == nil {
		err = out.flush()
	}
	if err != nil {
		req.recordError(err)
		panic(http.ErrAbortHandler) // part of the file is sent
	}
	return nil
}

// exportHeaders sets the header fields of a file of events.
func (req *request) exportHeaders(hub domain.HubID, zone *time.Location) {
	setPageHeaders(req.w.Header())
	header := req.w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	name := "events-" + string(hub) + "-" + req.info.At.In(zone).Format("2006-01-02-1504") + ".csv"
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// csvWriter writes a file for spreadsheets.
type csvWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	rows    *csv.Writer
	// written counts the rows since the file was sent on.
	written int
}

func newCSV(w http.ResponseWriter) *csvWriter {
	out := &csvWriter{w: w, control: http.NewResponseController(w), rows: csv.NewWriter(w)}
	out.rows.UseCRLF = true
	return out
}

// row writes a row. Text that a spreadsheet would run as a formula gets an apostrophe.
func (c *csvWriter) row(fields ...string) error {
	if c.written == 0 {
		// After an error the connection is closed, and the write fails.
		_ = c.control.SetWriteDeadline(time.Now().Add(exportWriteTimeout))
	}
	for i, field := range fields {
		fields[i] = withoutFormula(field)
	}
	if err := c.rows.Write(fields); err != nil {
		return err
	}
	if c.written++; c.written >= exportFlush {
		return c.flush()
	}
	return nil
}

// flush sends on what was written.
func (c *csvWriter) flush() error {
	c.written = 0
	c.rows.Flush()
	if err := c.rows.Error(); err != nil {
		return err
	}
	return c.control.Flush()
}

// withoutFormula returns a field that spreadsheets show as text. They run a field that begins with
// one of these characters as a formula, some also after spaces.
func withoutFormula(field string) string {
	if trimmed := strings.TrimLeft(field, " \u00a0\ufeff"); trimmed != "" &&
		strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(trimmed)[0]) {
		return "'" + field
	}
	return field
}
