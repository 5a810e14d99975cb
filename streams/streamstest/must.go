package streamstest

// Must ends a test, or a rapid check, whose preparation has failed: it calls t.Fatal with err
// unless that is nil.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
