//go:build javascript

package measure

func init() { inJavaScript = []string{"semaphore"} }
