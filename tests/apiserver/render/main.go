// render: what kustomize and helm make of daemonset/, as YAML on standard output, for tests without either program.
//
//	render kustomize FOLDER
//	render helm CHART NAMESPACE [VALUES-AS-JSON]
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T { check(err); return v }

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "kustomize":
		made := must(krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), args[1]))
		fmt.Print(string(must(made.AsYaml())))
	case len(args) >= 3 && args[0] == "helm":
		helm(args[1], args[2], append(args[3:], "{}")[0])
	default:
		check(fmt.Errorf("usage: render kustomize FOLDER | helm CHART NAMESPACE [VALUES-AS-JSON]"))
	}
}

// helm prints the chart's CRDs and then its templates in the order of their names, as `helm template --include-crds`.
func helm(folder, namespace, text string) {
	values := map[string]any{}
	check(json.Unmarshal([]byte(text), &values))
	chart := must(loader.Load(folder))
	release := chartutil.ReleaseOptions{Name: "netqos", Namespace: namespace, Revision: 1, IsInstall: true}
	given := must(chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities))
	made := must(engine.Render(chart, given))
	for _, crd := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", crd.File.Data)
	}
	names := []string{}
	for name := range made {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Printf("---\n%s\n", made[name])
	}
}
